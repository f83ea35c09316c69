"""Sequence to sequence with attention (V 2.2, B)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptrnet.models.base import Encoded, start_weights
from ptrnet.models.parts.dictionary import DictionaryModel, log_softmax
from ptrnet.models.parts.layers import decoder
from ptrnet.models.parts.score import Scorer, key_map, product, query_map, scorer, weights_of
from ptrnet.models.settings import AttendingDictionary


@dataclass(frozen=True)
class Attended(Encoded):
    """What attention looks at."""

    states: Tensor  # (B, n, H): e
    scorer: Scorer  # (B, K, H) queries to (B, K, n)


class Seq2SeqAttention(DictionaryModel):
    """`u_j = v' tanh(W1 e_j + W2 d_i)`, `d'_i = sum_j softmax(u)_j e_j`, over the dictionary
    `p(C_i) = softmax(W [d_i; d'_i] + b)`.

    Fed on: the embedding of `C_i` with `[d_i; d'_i]`; at the start `d_0` is the encoder's last
    output and `d'_0` is zero.
    """

    Settings = AttendingDictionary

    def __init__(self, features: int, num_specials: int, settings: AttendingDictionary) -> None:
        super().__init__(features, num_specials, settings)
        units = settings.hidden_size
        self.decoder = decoder(3 * units, settings)
        self.key = key_map(settings.score, units)
        self.query = query_map(settings.score, units)
        self.v = weights_of(settings.score, units)
        self.output = nn.Linear(2 * units, num_specials + self.n)
        start_weights(self)

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Attended:
        states, state = self.read(inputs, lengths)
        first = tuple(s[:, None] for s in state)
        return Attended(
            tokens=self.num_specials + self.n,
            state=(*first, torch.zeros_like(first[0])),
            states=states,
            scorer=scorer(self.key(states), self.v),
        )

    def step(
        self, encoded: Attended, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        *own, mixed = state
        fed = torch.cat([self.embedding(tokens), own[0], mixed], -1)
        after = self.decoder.step(fed, tuple(own))
        a = encoded.scorer(self.query(after[0])).softmax(-1)
        mixed = product(a, encoded.states)
        seen = torch.cat([after[0], mixed], -1)
        return log_softmax(self.output(seen)), (*after, mixed)


MODEL = Seq2SeqAttention
