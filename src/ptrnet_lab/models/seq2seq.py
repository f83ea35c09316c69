"""Sequence to sequence, without and with attention (Vinyals et al. 2015, sections 2.1 and 2.2).

An LSTM or GRU, the encoder, reads the input. A second LSTM or GRU, the decoder, writes symbols of a
dictionary. So the models need instances of a single size.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptrnet.masks import Lengths
from ptrnet.models.base import Encoded, PointerModel, full_lengths, init_uniform, shift_right
from ptrnet.models.parts.recurrent import State, decoder, encoder
from ptrnet.models.parts.score import (
    Scorer,
    key_projection,
    matmul_float32,
    query_projection,
    score_vector,
)
from ptrnet_lab.models import DictionaryAttentionSettings, DictionarySettings


class DictionaryModel(PointerModel):
    """Base class. Emits symbols of a fixed dictionary: the special slots, then positions 1 to n.

    The next decoder input is a learned embedding of the last symbol. The first decoder input is the
    embedding of END, in place of the paper's start symbol `=>`.
    """

    n: int

    def __init__(self, features: int, num_specials: int, settings: DictionarySettings) -> None:
        super().__init__(features, num_specials, settings)
        self.n = settings.n
        self.num_symbols = num_specials + settings.n
        self.encoder = encoder(features, settings)
        self.embedding = nn.Embedding(self.num_symbols, settings.hidden_size)

    def run_encoder(self, inputs: Tensor, lengths: Lengths) -> tuple[Tensor, State]:
        """The encoder's states `(B, n, H)` and its last state.

        Raises:
            ModelError: an instance does not have n elements.
        """
        lengths = full_lengths(inputs) if lengths is None else lengths
        self.check_lengths(lengths)
        states, state = self.encoder(inputs[:, : self.n], lengths)
        return states, state


def log_softmax(scores: Tensor) -> Tensor:
    """Log-softmax over all symbols of the dictionary, in float32 or better."""
    return scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))


class Seq2Seq(DictionaryModel):
    """`p(C_i) = softmax(W d_i + b)` over a dictionary.

    The decoder, whose state is `d_i`, starts from the encoder's last state.
    """

    Settings = DictionarySettings

    def __init__(self, features: int, num_specials: int, settings: DictionarySettings) -> None:
        super().__init__(features, num_specials, settings)
        self.decoder = decoder(settings.hidden_size, settings)
        self.output = nn.Linear(settings.hidden_size, self.num_symbols)
        init_uniform(self)

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> Encoded:
        _, state = self.run_encoder(inputs, lengths)
        return Encoded(self.num_symbols, tuple(part[:, None] for part in state))

    def step(
        self, encoded: Encoded, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        state = self.decoder.step(self.embedding(tokens), state)
        return log_softmax(self.output(state[0])), state

    def log_probs(
        self, inputs: Tensor, lengths: Lengths, targets: Tensor, target_lengths: Lengths = None
    ) -> Tensor:
        _, state = self.run_encoder(inputs, lengths)
        if target_lengths is None:
            target_lengths = full_lengths(targets)
        states, _ = self.decoder(self.embedding(shift_right(targets)), target_lengths, state)
        return log_softmax(self.output(states))


@dataclass(frozen=True)
class EncodedStates(Encoded):
    """The encoder's states, which the decoder attends to."""

    states: Tensor  # (B, N, H): e
    scorer: Scorer  # scores these states at each step


class Seq2SeqAttention(DictionaryModel):
    """`p(C_i) = softmax(W [d_i; d'_i] + b)` over a dictionary.

    Attention gives `d'_i = sum_j softmax(u)_j e_j`, with `u_j = v' tanh(W1 e_j + W2 d_i)`. The next
    decoder input is the embedding of `C_i` together with `[d_i; d'_i]`. At the first step `d_0` is
    the encoder's last hidden state, and `d'_0` is zero.
    """

    Settings = DictionaryAttentionSettings

    def __init__(
        self, features: int, num_specials: int, settings: DictionaryAttentionSettings
    ) -> None:
        super().__init__(features, num_specials, settings)
        units = settings.hidden_size
        self.decoder = decoder(3 * units, settings)
        self.key = key_projection(settings.score, units)
        self.query = query_projection(settings.score, units)
        self.v = score_vector(settings.score, units)
        self.output = nn.Linear(2 * units, self.num_symbols)
        init_uniform(self)

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> EncodedStates:
        states, last = self.run_encoder(inputs, lengths)
        state = tuple(part[:, None] for part in last)
        context = torch.zeros_like(state[0])  # d'_0
        return EncodedStates(
            num_tokens=self.num_symbols,
            state=(*state, context),
            states=states,
            scorer=Scorer(self.key(states), self.v),
        )

    def step(
        self, encoded: EncodedStates, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        *decoder_state, context = state
        decoder_input = torch.cat([self.embedding(tokens), decoder_state[0], context], -1)
        after = self.decoder.step(decoder_input, tuple(decoder_state))
        attention = encoded.scorer(self.query(after[0])).softmax(-1)
        context = matmul_float32(attention, encoded.states)
        log_probs = log_softmax(self.output(torch.cat([after[0], context], -1)))
        return log_probs, (*after, context)
