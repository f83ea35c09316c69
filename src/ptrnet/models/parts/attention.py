"""Multi-head attention and the layers made of it (Vaswani et al. 2017), norms first.

The residual stream keeps the type of its input; what autocast rounds are the layers' products.
Norms have no weights: a linear map follows each, which would take them in.
"""

import math

import torch
from torch import Tensor, nn

KeysValues = tuple[Tensor, Tensor]


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """`softmax(q k' / sqrt(D) + mask) v` in each head: `(..., M, heads D)` of split queries
    `(..., heads, M, D)`, and keys and values `(..., heads, T, D)`.

    `mask` is 0 or -inf, of a shape that goes with `(..., heads, M, T)`. Written out, and with the
    softmax in float32 or better: on a CPU PyTorch's fused attention, and its softmax of bfloat16,
    take several times as long for so few elements.
    """
    scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.transpose(-1, -2)
    found = (scores + mask).softmax(-1).to(v.dtype) @ v
    return found.transpose(-2, -3).flatten(-2)


def split(x: Tensor, heads: int) -> Tensor:
    """`(..., T, H)` as `(..., heads, T, H / heads)`."""
    return x.view(*x.shape[:-1], heads, x.shape[-1] // heads).transpose(-2, -3)


def norm(x: Tensor) -> Tensor:
    """Each row with mean 0 and variance 1."""
    return nn.functional.layer_norm(x, x.shape[-1:])


def length_mask(lengths: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """`(B, width)`: 0 within each length, -inf behind it."""
    behind = torch.arange(width, device=lengths.device) >= lengths[:, None]
    return _closed(behind, dtype)


def causal_mask(steps: int, like: Tensor) -> Tensor:
    """`(steps, steps)`: -inf where a step would see a later one; of the type of `like`."""
    at = torch.arange(steps, device=like.device)
    return _closed(at > at[:, None], like.dtype)


def _closed(where: Tensor, dtype: torch.dtype) -> Tensor:
    mask = torch.zeros(where.shape, dtype=dtype, device=where.device)
    return mask.masked_fill(where, -torch.inf)


class SelfAttention(nn.Module):
    """Rows look at each other."""

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inward, self.outward = nn.Linear(units, 3 * units), nn.Linear(units, units)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (split(part, self.heads) for part in self.inward(x).chunk(3, -1))
        return self.outward(attend(q, k, v, mask))

    def step(self, x: Tensor, earlier: KeysValues) -> tuple[Tensor, KeysValues]:
        """The newest row `(..., H)` looks at the earlier ones and at itself.

        `earlier` are their keys and values `(..., t, H)`. Returns what it finds, and `earlier`
        with its own.
        """
        q, *own = self.inward(x)[..., None, :].chunk(3, -1)
        k, v = (
            torch.cat([past.to(new.dtype), new], -2) for past, new in zip(earlier, own, strict=True)
        )
        h, none = self.heads, k.new_zeros(())
        found = attend(split(q, h), split(k, h), split(v, h), none)
        return self.outward(found[..., 0, :]), (k, v)


class CrossAttention(nn.Module):
    """Rows look at others."""

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.others = nn.Linear(units, units), nn.Linear(units, 2 * units)
        self.outward = nn.Linear(units, units)

    def keys_values(self, others: Tensor) -> KeysValues:
        """Of rows `(B, T, H)` that are looked at, split; laid out once for all who will look."""
        keys, values = self.others(others).chunk(2, -1)
        return split(keys, self.heads).contiguous(), split(values, self.heads).contiguous()

    def forward(self, x: Tensor, others: KeysValues, mask: Tensor) -> Tensor:
        return self.outward(attend(split(self.query(x), self.heads), *others, mask))


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

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention(norm(x), mask)
        return x + self.feed_forward(norm(x))


class DecoderLayer(nn.Module):
    """An encoder's layer with cross-attention between its two parts."""

    def __init__(self, units: int, heads: int, between: int) -> None:
        super().__init__()
        self.attention = SelfAttention(units, heads)
        self.cross = CrossAttention(units, heads)
        self.feed_forward = FeedForward(units, between)

    def forward(self, x: Tensor, causal: Tensor, others: KeysValues, mask: Tensor) -> Tensor:
        return self._behind(x + self.attention(norm(x), causal), others, mask)

    def step(
        self, x: Tensor, earlier: KeysValues, others: KeysValues, mask: Tensor
    ) -> tuple[Tensor, KeysValues]:
        """The newest rows `(B, K, H)`; `earlier` is of those before, each `(B, K, t, H)`."""
        found, own = self.attention.step(norm(x), earlier)
        return self._behind(x + found, others, mask), own

    def _behind(self, x: Tensor, others: KeysValues, mask: Tensor) -> Tensor:
        x = x + self.cross(norm(x), others, mask)
        return x + self.feed_forward(norm(x))
