"""The Pointer Network of Vinyals et al. 2015, section 2.3.

The attention over the inputs is the probability distribution of the next token of the answer.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptrnet.masks import Lengths, gather_rows
from ptrnet.models.base import (
    Encoded,
    PointerModel,
    decoder_inputs,
    full_lengths,
    init_uniform,
    masked_log_softmax,
    shift_right,
)
from ptrnet.models.parts.recurrent import State, decoder, encoder
from ptrnet.models.parts.score import Scorer, key_projection, query_projection, score_vector, scores
from ptrnet.models.settings import AttentionSettings


@dataclass(frozen=True)
class EncodedSlots(Encoded):
    """The encoded tokens of a Ptr-Net: special slots, then elements."""

    inputs: Tensor  # (B, S + N, d): the decoder's input after each token
    lengths: Tensor  # (B,) number of tokens that are not padding: S + n
    keys: Tensor  # (B, S + N, H): the keys that the pointer scores
    scorer: Scorer  # scores these keys at each step


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

    def encode_slots(self, inputs: Tensor, lengths: Lengths) -> EncodedSlots:
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
            scorer=Scorer(keys, self.v, token_lengths),
        )

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> EncodedSlots:
        return self.encode_slots(inputs, lengths)

    def step(
        self, encoded: EncodedSlots, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self.point(encoded, gather_rows(encoded.inputs, tokens), state)

    def point(
        self, encoded: EncodedSlots, decoder_inputs: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """Log-probabilities `(B, K, S + N)` and the next state, for decoder inputs `(B, K, d)`."""
        state = self.decoder.step(decoder_inputs, state)
        u = encoded.scorer(self.query(state[0]))
        return masked_log_softmax(u, encoded.lengths), state

    def log_probs(
        self, inputs: Tensor, lengths: Lengths, targets: Tensor, target_lengths: Lengths = None
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
