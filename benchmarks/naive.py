"""A Ptr-Net written the usual way, as the other side of the ratios: never used by the library.

`nn.LSTM` reads, an `LSTMCell` writes step by step, and each step takes tanh of every sum of an
encoder state and the decoder state, in float32.
"""

import torch
from torch import Tensor, nn


class NaivePtrNet(nn.Module):
    """V 2.3 with teacher forcing: log-probabilities `(B, M, 1 + N)`, the end first."""

    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.encoder = nn.LSTM(features, units, batch_first=True)
        self.decoder = nn.LSTMCell(features, units)
        self.w1 = nn.Linear(units, units, bias=False)
        self.w2 = nn.Linear(units, units, bias=False)
        self.v = nn.Linear(units, 1, bias=False)
        self.start = nn.Parameter(torch.zeros(features))
        self.end = nn.Parameter(torch.zeros(units))

    def log_probs(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """`inputs` `(B, N, d)`, `targets` `(B, M)` tokens with 0 as the end."""
        batch = len(inputs)
        states, (h, c) = self.encoder(inputs)
        h, c = h[0], c[0]
        slots = torch.cat([self.end.expand(batch, 1, -1), states], 1)
        feed = torch.cat([self.start.expand(batch, 1, -1), inputs], 1)
        rows = torch.arange(batch)
        last = self.start.expand(batch, -1)
        steps = []
        for i in range(targets.shape[1]):
            h, c = self.decoder(last, (h, c))
            scores = self.v(torch.tanh(self.w1(slots) + self.w2(h)[:, None]))[..., 0]
            steps.append(scores.log_softmax(-1))
            last = feed[rows, targets[:, i]]
        return torch.stack(steps, 1)
