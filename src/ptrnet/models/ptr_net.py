"""The Pointer Network of Vinyals et al. 2015, section 2.3.

The attention over the inputs is the probability distribution of the next token of the answer.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ptrnet.kernels.additive import MAX_PLAIN_ENTRIES
from ptrnet.kernels.eager import is_plain_float32, is_unchanged
from ptrnet.kernels.lstm import MIN_ROWS
from ptrnet.masks import gather_rows
from ptrnet.models.base import (
    Encoded,
    PointerModel,
    decoder_inputs,
    full_lengths,
    init_uniform,
    masked_log_softmax,
    shift_right,
)
from ptrnet.models.parts.recurrent import LSTM, Recurrent, State, decoder, encoder
from ptrnet.models.parts.score import (
    Linear,
    Scorer,
    key_projection,
    query_projection,
    score_vector,
    scores,
)
from ptrnet.models.settings import AttentionSettings
from ptrnet.types import END

if TYPE_CHECKING:
    from ptrnet.kernels.pointer_step import PointerStep


@dataclass(frozen=True)
class EncodedSlots(Encoded):
    """The encoded tokens of a Ptr-Net: special slots, then elements."""

    inputs: Tensor  # (B, S + N, d): the decoder's input after each token
    lengths: Tensor  # (B,) number of tokens that are not padding: S + n
    keys: Tensor  # (B, S + N, H): the keys that the pointer scores
    pointer: "Pointer"  # computes the decoder's steps, which point at these keys


class Pointer:
    """Computes the decoder's steps one after another. All steps point at the same keys.

    If there are many rows and keys, and no gradients are needed, a compiled kernel
    (`kernels/pointer_step.py`) may compute the whole step.

    Args:
        decoder: computes the next state.
        query: projects a state to a query (W2).
        keys: `(B, S + N, H)`.
        v: the vector of the additive score; None for other scores.
        lengths: `(B,)` number of keys that are not padding.
    """

    def __init__(
        self,
        decoder: Recurrent,
        query: nn.Module,
        keys: Tensor,
        v: Tensor | None,
        lengths: Tensor,
    ) -> None:
        self._decoder, self._query = decoder, query
        self._scorer, self._lengths = Scorer(keys, v, lengths), lengths
        self._compiled: PointerStep | None = None

    def __call__(
        self, inputs: Tensor, state: State, tokens: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Return log-probabilities `(B, K, S + N)` and the next state.

        Args:
            inputs: `(B, K, d)`, the decoder's inputs.
            state: the decoder's state.
            tokens: `(B, K)`, the last token of each prefix, as in `PointerModel.step`. If tokens
                are given, the step may skip prefixes that have ended.
        """
        compiled = self._compiled_for(inputs, state)
        if compiled is not None:
            # At the first step all tokens are 0, the start symbol. No prefix has ended then.
            ended = None if tokens is None or not tokens.any() else tokens == END
            return compiled(inputs, (state[0], state[1]), ended)
        state = self._decoder.step(inputs, state)
        u = self._scorer(self._query(state[0]))
        return masked_log_softmax(u, self._lengths), state

    def _compiled_for(self, inputs: Tensor, state: State) -> "PointerStep | None":
        decoder, query, scorer = self._decoder, self._query, self._scorer
        keys, v, rows = scorer.keys, scorer.v, inputs.shape[0] * inputs.shape[1]
        if rows < MIN_ROWS or keys.numel() <= MAX_PLAIN_ENTRIES:
            return None  # not worth loading the compiled kernel for so few rows or keys
        if v is None or not (isinstance(decoder, LSTM) and isinstance(query, Linear)):
            return None
        if not is_plain_float32(inputs, *state, keys, v):
            return None
        if self._compiled is not None:  # weights and hooks were checked when the kernel was made
            return self._compiled
        if not (is_unchanged(decoder, (LSTM,)) and is_unchanged(query, (Linear,))):
            return None
        from ptrnet.kernels.additive.cpu import prepared_scores
        from ptrnet.kernels.pointer_step import PointerStep, can_serve

        if can_serve(inputs.shape[2], keys.shape[2]):
            prepared = prepared_scores(keys, v, self._lengths)
            self._compiled = PointerStep(decoder.weights, query.weight, prepared)
        return self._compiled


class PtrNet(PointerModel):
    """`u_j = v' tanh(W1 e_j + W2 d_i)`, `p(C_i) = softmax(u)`.

    An LSTM or GRU, the encoder, encodes the elements `P_j` as states `e_j`. A second LSTM or GRU,
    the decoder, has the state `d_i` at step i. The next input of the decoder is a copy of the
    element `P_{C_i}` that the decoder pointed at.
    """

    Settings = AttentionSettings

    def __init__(self, features: int, num_specials: int, settings: AttentionSettings) -> None:
        super().__init__(features, num_specials, settings)
        units = settings.hidden_size
        self.encoder = encoder(features, settings)
        self.decoder = decoder(features, settings)
        self.key = key_projection(settings.score, units)
        self.query = query_projection(settings.score, units)
        self.v = score_vector(settings.score, units)
        # Special slot 0 begins and ends an answer (figure 1 of the paper). The slot's input is
        # `=>`, the decoder's first input. The slot's state is `<=`. To end the answer, the decoder
        # points at this state.
        self.special_inputs = nn.Parameter(torch.empty(num_specials, features))
        self.special_states = nn.Parameter(torch.empty(num_specials, units))
        init_uniform(self)

    def run_encoder(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        """Return the states `(B, N, H)` that the pointer scores, and the decoder's first state."""
        return self.encoder(inputs, lengths)  # type: ignore[no-any-return]

    def encode_slots(self, inputs: Tensor, lengths: Tensor | None) -> EncodedSlots:
        """Return the encoded tokens that the pointer can choose, with the decoder's first state."""
        lengths = full_lengths(inputs) if lengths is None else lengths
        states, state = self.run_encoder(inputs, lengths)
        special = self.special_states.to(states.dtype).expand(inputs.shape[0], -1, -1)
        keys = self.key(torch.cat([special, states], 1))
        token_lengths = lengths + self.num_specials
        return EncodedSlots(
            num_tokens=self.num_specials + inputs.shape[1],
            state=tuple(part[:, None] for part in state),
            inputs=decoder_inputs(inputs, self.special_inputs),
            lengths=token_lengths,
            keys=keys,
            pointer=Pointer(self.decoder, self.query, keys, self.v, token_lengths),
        )

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> EncodedSlots:
        return self.encode_slots(inputs, lengths)

    def step(
        self, encoded: EncodedSlots, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        return encoded.pointer(gather_rows(encoded.inputs, tokens), state, tokens)

    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        encoded = self.encode_slots(inputs, lengths)
        if target_lengths is None:
            target_lengths = full_lengths(targets)
        state = tuple(part[:, 0] for part in encoded.state)
        fed_elements = gather_rows(encoded.inputs, shift_right(targets))
        states, _ = self.decoder(fed_elements, target_lengths, state)
        u = scores(encoded.keys, self.query(states), self.v, encoded.lengths, target_lengths)
        return masked_log_softmax(u, encoded.lengths)


MODEL = PtrNet
