"""Layers of a transformer's encoder (Vaswani et al. 2017), norms first.

The residual stream keeps the type of its input; what autocast rounds are the layers' products.
Norms have no weights: a linear map follows each, which would take them in.
"""

import math

import torch
from torch import Tensor, nn


def attend(projections: Tensor, heads: int, mask: Tensor | None) -> Tensor:
    """`softmax(q k' / sqrt(H / heads) + mask) v` in each head, `(R, T, H)`.

    It is written out as two products: on a CPU PyTorch's fused attention takes ten times as long
    for so few elements.

    Args:
        projections: `(R, T, 3 H)` queries, keys and values.
        heads: each has H / heads units.
        mask: `(R, T)` what is added to the scores of a key: 0, or -inf on padding; None: no
            padding.
    """
    batch, steps, width = projections.shape
    units = width // (3 * heads)
    split = projections.view(batch, steps, 3, heads, units).permute(2, 0, 3, 1, 4)
    q, k, v = split.contiguous().view(3, batch * heads, steps, units)
    scores = torch.bmm(q * (1 / math.sqrt(units)), k.transpose(1, 2))
    if mask is not None:
        scores = scores + mask.to(scores.dtype).repeat_interleave(heads, 0)[:, None]
    attended = torch.bmm(scores.softmax(-1), v)
    return attended.view(batch, heads, steps, units).transpose(1, 2).reshape(batch, steps, -1)


def norm(x: Tensor) -> Tensor:
    """Each row with mean 0 and variance 1."""
    return nn.functional.layer_norm(x, x.shape[-1:])


class SelfAttention(nn.Module):
    """`W2 attend(W1 x + b1) + b2`: every row of `(R, T, H)` attends to all of them."""

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inward, self.outward = nn.Linear(units, 3 * units), nn.Linear(units, units)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.outward(attend(self.inward(x), self.heads, mask))  # type: ignore[no-any-return]


class FeedForward(nn.Sequential):
    """`W2 max(0, W1 x + b1) + b2`, with `inner_units` between the two maps."""

    def __init__(self, units: int, inner_units: int) -> None:
        super().__init__(nn.Linear(units, inner_units), nn.ReLU(), nn.Linear(inner_units, units))


class EncoderLayer(nn.Module):
    """`x + self-attention(norm x)`, then `x + feed-forward(norm x)`."""

    def __init__(self, units: int, heads: int, inner_units: int) -> None:
        super().__init__()
        self.attention = SelfAttention(units, heads)
        self.feed_forward = FeedForward(units, inner_units)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = x + self.attention(norm(x), mask)
        return x + self.feed_forward(norm(x))  # type: ignore[no-any-return]
