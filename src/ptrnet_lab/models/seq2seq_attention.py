"""Sequence to sequence with attention over the encoder's states (Vinyals et al. 2015, 2.2)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptrnet.models.base import Encoded, init_uniform
from ptrnet.models.parts.recurrent import decoder
from ptrnet.models.parts.score import (
    Scorer,
    key_projection,
    matmul_float32,
    query_projection,
    score_vector,
)
from ptrnet_lab.models import DictionaryAttentionSettings
from ptrnet_lab.models.dictionary import DictionaryModel, log_softmax


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

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> EncodedStates:
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


MODEL = Seq2SeqAttention
