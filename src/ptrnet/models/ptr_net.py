"""The Pointer Network (V 2.3): attention over the inputs is the answer."""

import torch
from torch import Tensor, nn

from ptrnet.kernels import additive_scores
from ptrnet.models.base import (
    Encoded,
    PointerModel,
    all_of,
    feedable,
    log_softmax,
    pick,
    shifted,
)
from ptrnet.models.recurrent import LSTM


class PtrNet(PointerModel):
    """`u_j = v' tanh(W1 e_j + W2 d_i)`, `p(C_i) = softmax(u)`, fed on: a copy of `P_{C_i}`.

    Args:
        features: numbers an element has, d.
        specials: special slots of the pointer, END first.
        hidden_size: units of encoder and decoder, H.
    """

    def __init__(self, features: int, specials: int = 1, hidden_size: int = 256) -> None:
        super().__init__()
        self.features, self.specials, self.hidden_size = features, specials, hidden_size
        self.encoder = LSTM(features, hidden_size)
        self.decoder = LSTM(features, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size, bias=False)  # W1
        self.query = nn.Linear(hidden_size, hidden_size, bias=False)  # W2
        self.v = nn.Parameter(torch.empty(hidden_size))
        # Slot 0 of both: `=>` is what the decoder is fed first, `<=` what it points at to end.
        self.special_inputs = nn.Parameter(torch.empty(specials, features))
        self.special_states = nn.Parameter(torch.empty(specials, hidden_size))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.08, 0.08)  # V 3

    def settings(self) -> dict[str, int | str | float | bool]:
        return {"hidden_size": self.hidden_size}

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Encoded:
        lengths = all_of(inputs) if lengths is None else lengths
        states, (h, c) = self.encoder(inputs, lengths)
        special = self.special_states.to(states.dtype).expand(len(inputs), -1, -1)
        return Encoded(
            inputs=feedable(inputs, self.special_inputs),
            lengths=lengths + self.specials,
            keys=self.key(torch.cat([special, states], 1)),
            state=(h[:, None], c[:, None]),
        )

    def step(
        self, encoded: Encoded, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        h, c = self.decoder.step(pick(encoded.inputs, tokens), state)
        scores = additive_scores(encoded.keys, self.query(h), self.v, encoded.lengths)
        return log_softmax(scores, encoded.lengths), (h, c)

    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        encoded = self.encode(inputs, lengths)
        if target_lengths is None:
            target_lengths = all_of(targets)
        h, c = (s[:, 0] for s in encoded.state)
        fed = pick(encoded.inputs, shifted(targets))
        states, _ = self.decoder(fed, target_lengths, (h, c))
        scores = additive_scores(
            encoded.keys, self.query(states), self.v, encoded.lengths, target_lengths
        )
        return log_softmax(scores, encoded.lengths)


MODEL = PtrNet
