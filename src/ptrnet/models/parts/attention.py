"""Layers of a transformer's encoder (Vaswani et al. 2017), norms first.

The residual stream keeps the type of its input; what autocast rounds are the layers' products.
Norms have no weights: a linear map follows each, which would take them in.
"""

import math

import torch
from torch import Tensor, nn


def attend(rows: Tensor, heads: int, mask: Tensor | None) -> Tensor:
    """`softmax(q k' / sqrt(H / heads) + mask) v` in each head.

    `rows` `(R, T, 3 H)` are queries, keys and values; what is found is `(R, T, H)`. `mask`
    `(R, T)` is 0, or -inf where nobody looks; None lets all be seen. It is written out as two
    products: on a CPU PyTorch's fused attention takes ten times as long for so few elements.
    """
    batch, steps, width = rows.shape
    units = width // (3 * heads)
    split = rows.view(batch, steps, 3, heads, units).permute(2, 0, 3, 1, 4)
    q, k, v = split.contiguous().view(3, batch * heads, steps, units)
    scores = torch.bmm(q * (1 / math.sqrt(units)), k.transpose(1, 2))
    if mask is not None:
        each = mask.to(scores.dtype).repeat_interleave(heads, 0)
        scores = scores + each[:, None]
    found = torch.bmm(scores.softmax(-1), v)
    return found.view(batch, heads, steps, units).transpose(1, 2).reshape(batch, steps, -1)


def norm(x: Tensor) -> Tensor:
    """Each row with mean 0 and variance 1."""
    return nn.functional.layer_norm(x, x.shape[-1:])


class SelfAttention(nn.Module):
    """Rows look at each other."""

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inward, self.outward = nn.Linear(units, 3 * units), nn.Linear(units, units)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        found: Tensor = self.outward(attend(self.inward(x), self.heads, mask))
        return found


class FeedForward(nn.Sequential):
    """`W2 max(0, W1 x + b1) + b2`."""

    def __init__(self, units: int, between: int) -> None:
        super().__init__(nn.Linear(units, between), nn.ReLU(), nn.Linear(between, units))


class EncoderLayer(nn.Module):
    """`x + self-attention(norm x)`, then `x + feed-forward(norm x)`."""

    def __init__(self, units: int, heads: int, between: int) -> None:
        super().__init__()
        self.attention = SelfAttention(units, heads)
        self.feed_forward = FeedForward(units, between)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = x + self.attention(norm(x), mask)
        found: Tensor = x + self.feed_forward(norm(x))
        return found
