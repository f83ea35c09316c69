"""Multi-head attention, and transformer layers with norms first (Vaswani et al. 2017).

The residual stream keeps the dtype of its input: under autocast, only matrix products have the
lower precision. A linear layer follows each norm and could absorb weights of the norm, so norms
have no weights.

In shapes, D is the number of units of a head, H / heads. M rows attend to L rows.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from ptrnet.kernels import is_plain_float32, prepare, structure_of
from ptrnet.masks import length_mask
from ptrnet.models.parts import Dropout

if TYPE_CHECKING:
    from ptrnet.kernels.decoder_layer_cpu import Step
    from ptrnet.models.settings import LayerSettings


class Elements(nn.Module):
    """Embedding of elements, `W [p; sin(pi p); cos(pi p); sin(2 pi p); ...] + b`.

    In bfloat16, slightly different features would be rounded to equal numbers. So the embedding is
    computed in float32 or better even under autocast.

    Args:
        features: number of features of an element, d.
        units: size of the output, H.
        octaves: number of frequencies. Each octave doubles the frequency.
        see_indices: whether to add `sin` and `cos` of `j / 10000^(2k / H)`, where j is the index
            of the element (Vaswani et al. 2017, section 3.5).
    """

    def __init__(self, features: int, units: int, octaves: int, see_indices: bool) -> None:
        super().__init__()
        self.octaves, self.see_indices = octaves, see_indices
        self.map = nn.Linear(features * (1 + 2 * octaves), units)

    def forward(self, inputs: Tensor) -> Tensor:
        """Embed elements `(B, N, d)` as `(B, N, H)`."""
        with torch.autocast(inputs.device.type, enabled=False):
            angles = [2**k * math.pi * inputs for k in range(self.octaves)]
            waves = [wave(angle) for angle in angles for wave in (torch.sin, torch.cos)]
            rows: Tensor = self.map(torch.cat([inputs, *waves], -1))
            return rows + index_encoding(rows) if self.see_indices else rows


def with_deviations(inputs: Tensor, lengths: Tensor) -> Tensor:
    """Append deviations to features `(B, N, d)`: the differences from the means over the instance.

    A linear function of the result `(B, N, 2d)` can compare an element with the mean.
    """
    is_element = length_mask(lengths, inputs.shape[1])[..., None]
    means = torch.where(is_element, inputs, 0).sum(1, keepdim=True) / lengths[:, None, None]
    return torch.cat([inputs, inputs - means], -1)


def beside_others(inputs: Tensor, is_element: Tensor) -> Tensor:
    """Return how far each feature is above the lowest, and the highest, of the other elements.

    The differences `(B, N, 2d)` of features `(B, N, d)` are 0 for an element without others, and on
    padding; `is_element` is `(B, N)`. A difference of equal numbers is exactly 0 on every machine,
    as that of a mean would not be, so a tree may split there.
    """
    parts, is_absent = [], ~is_element[..., None]
    for sign in (1.0, -1.0):  # the highest is the lowest with the other sign
        values = (sign * inputs).masked_fill(is_absent, torch.inf)
        lowest = nn.functional.pad(values, (0, 0, 0, 1), value=torch.inf).topk(2, 1, False).values
        of_others = torch.where(values == lowest[:, :1], lowest[:, 1:], lowest[:, :1])
        has_none = is_absent | (of_others == torch.inf)
        parts.append((sign * (values - of_others)).masked_fill(has_none, 0))
    return torch.cat(parts, -1)


def with_comparisons(inputs: Tensor, free: Tensor, is_element: Tensor) -> Tensor:
    """Append `beside_others` to features `(B, N, d)`: what trees for choices read, `(B, N, 3d)`.

    `free` `(B, N, d)` has 0 in place of features with a sign, which says how the own score depends
    on the own feature alone.
    """
    return torch.cat([inputs, beside_others(free, is_element)], -1)


class Logs(nn.Module):
    """Logarithms of features. A feature that is 0 or negative in some training example gives 0.

    A linear function of logarithms can compare ratios or products of features. A value below all
    values of the feature in the training examples gets the smallest logarithm in these examples.

    Args:
        spread, lowest: `(d,)`; see `Facts.relative_range`.
    """

    spread: Tensor
    lowest: Tensor

    def __init__(self, spread: Tensor, lowest: Tensor) -> None:
        super().__init__()
        # The task's settings have these numbers, so the saved weights need not include them.
        self.register_buffer("spread", spread, persistent=False)
        self.register_buffer("lowest", lowest, persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `log(x / mean of x)` of features x. `inputs` `(B, N, d)` are x, standardized."""
        with torch.autocast(inputs.device.type, enabled=False):
            return torch.maximum(1 + self.spread * inputs, self.lowest).log()


def index_encoding(rows: Tensor) -> Tensor:
    """The encoding `(N, H)` of the indices of rows `(B, N, H)`: sines, then cosines."""
    _, n, units = rows.shape
    exponents = torch.arange(-(-units // 2), device=rows.device, dtype=rows.dtype)
    indices = torch.arange(n, device=rows.device, dtype=rows.dtype)
    angles = indices[:, None] * torch.exp(exponents * (-2 * math.log(10_000) / units))
    return torch.cat([angles.sin(), angles.cos()], -1)[:, :units]


def normal_vectors(*shape: int, divisor: float = 1.0) -> Tensor:
    """Normally distributed initial values of learned vectors.

    On the meta device the values stay undefined. There `normal_` would import PyTorch's compiler,
    which takes longer than the rest of loading a model. A divisor of 10 gives a standard deviation
    of 0.1.
    """
    numbers = torch.empty(shape)
    return numbers if numbers.is_meta else numbers.normal_() / divisor


KeysValues = tuple[Tensor, Tensor]


def attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """`softmax(q k' / sqrt(D) + bias) v` in each head, with heads concatenated: `(..., M, H)`.

    PyTorch's fused attention computes many rows in float32 on a CPU without gradients, because it
    stores no scores. In training we use the formula: on a CPU, the backward pass of fused attention
    in bfloat16 takes several times as long, and it has no second derivative. The formula's softmax
    is in float32 or better.

    Args:
        queries: `(..., heads, M, D)`.
        keys: `(..., heads, L, D)`.
        values: `(..., heads, L, D)`.
        bias: a number for each score, -inf on padding, broadcast to `(..., heads, M, L)`.
    """
    # Read a size only after the first check, or an exported graph would accept no other size.
    if is_plain_float32(queries, keys, values, bias) and queries.shape[-2] > 1:
        mask = bias.expand(*queries.shape[:-1], keys.shape[-2])
        attended = nn.functional.scaled_dot_product_attention(queries, keys, values, mask)
    else:
        scores = (queries * (1 / math.sqrt(queries.shape[-1]))) @ keys.transpose(-1, -2)
        attended = (scores + bias).softmax(-1).to(values.dtype) @ values
    return attended.transpose(-2, -3).flatten(-2)


def split_heads(rows: Tensor, heads: int) -> Tensor:
    """Reshape `(..., M, H)` to `(..., heads, M, H / heads)`."""
    return rows.view(*rows.shape[:-1], heads, rows.shape[-1] // heads).transpose(-2, -3)


def layer_norm(rows: Tensor) -> Tensor:
    """Normalize each row to mean 0 and variance 1."""
    width = int(rows.shape[-1])  # `int` makes the width a constant when PyTorch traces
    return nn.functional.layer_norm(rows, (width,))


def attention_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """The term to add to scores: 0 where the mask is True, -inf elsewhere."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def causal_mask(steps: int, device: torch.device) -> Tensor:
    """`(M, M)` boolean: a step (row) may attend to itself and to earlier steps (columns)."""
    positions = torch.arange(steps, device=device)
    return positions <= positions[:, None]


class SelfAttention(nn.Module):
    """Rows attend to each other."""

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inward, self.outward = nn.Linear(units, 3 * units), nn.Linear(units, units)

    def forward(self, rows: Tensor, bias: Tensor) -> Tensor:
        """Attend from rows `(B, L, H)` to themselves; the bias broadcasts to `(B, heads, L, L)`."""
        queries, keys, values = (split_heads(x, self.heads) for x in self.inward(rows).chunk(3, -1))
        return self.outward(attend(queries, keys, values, bias))

    def step(self, rows: Tensor, earlier: KeysValues) -> tuple[Tensor, KeysValues]:
        """Attend from the newest row `(..., H)` of each sequence to t earlier rows and to itself.

        Return the new rows `(..., H)`, and the keys and values of all rows up to the newest. Those
        of the earlier rows are `(..., t, H)`.
        """
        queries, *newest = self.inward(rows)[..., None, :].chunk(3, -1)
        keys, values = (
            torch.cat([past.to(new.dtype), new], -2)
            for past, new in zip(earlier, newest, strict=True)
        )
        q, k, v = (split_heads(x, self.heads) for x in (queries, keys, values))
        attended = attend(q, k, v, keys.new_zeros(()))
        return self.outward(attended[..., 0, :]), (keys, values)


class CrossAttention(nn.Module):
    """Rows attend to other rows. In a decoder, the other rows are the encoder's states."""

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.others = nn.Linear(units, units), nn.Linear(units, 2 * units)
        self.outward = nn.Linear(units, units)

    def keys_values(self, others: Tensor) -> KeysValues:
        """Keys and values `(B, heads, L, D)` of `others` `(B, L, H)`, which all steps can share."""
        keys, values = self.others(others).chunk(2, -1)
        return (
            split_heads(keys, self.heads).contiguous(),
            split_heads(values, self.heads).contiguous(),
        )

    def forward(self, rows: Tensor, others: KeysValues, bias: Tensor) -> Tensor:
        """Attend from rows `(B, M, H)` to others; the bias broadcasts to `(B, heads, M, L)`."""
        return self.outward(attend(split_heads(self.query(rows), self.heads), *others, bias))


class FeedForward(nn.Sequential):
    """`W2 max(0, W1 x + b1) + b2`."""

    def __init__(self, units: int, inner_units: int) -> None:
        super().__init__(nn.Linear(units, inner_units), nn.ReLU(), nn.Linear(inner_units, units))


class EncoderLayer(nn.Module):
    """`x + self-attention(norm x)`, then `x + feed-forward(norm x)`; dropout before each sum."""

    def __init__(self, units: int, heads: int, inner_units: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention = SelfAttention(units, heads)
        self.feed_forward = FeedForward(units, inner_units)
        self.dropout = Dropout(dropout)

    def forward(self, rows: Tensor, bias: Tensor) -> Tensor:
        rows = rows + self.dropout(self.attention(layer_norm(rows), bias))
        return rows + self.dropout(self.feed_forward(layer_norm(rows)))


class Encoder(nn.ModuleList):
    """The layers of a transformer's encoder, and the norm after the last."""

    def __init__(self, settings: "LayerSettings", dropout: float = 0.0) -> None:
        sizes = (settings.hidden_size, settings.heads, settings.feed_forward)
        super().__init__(EncoderLayer(*sizes, dropout) for _ in range(settings.encoder_layers))

    def forward(self, rows: Tensor, *biases: Tensor) -> Tensor:
        """Encode rows `(B, M, H)`. There is a bias of attention for each layer, or one for all."""
        for layer, bias in zip(
            self, biases if len(biases) > 1 else biases * len(self), strict=True
        ):
            rows = layer(rows, bias)
        return layer_norm(rows)


class DecoderLayer(nn.Module):
    """An encoder layer with cross-attention between self-attention and feed-forward."""

    def __init__(self, units: int, heads: int, inner_units: int) -> None:
        super().__init__()
        self.attention = SelfAttention(units, heads)
        self.cross = CrossAttention(units, heads)
        self.feed_forward = FeedForward(units, inner_units)
        self._built = structure_of(self)

    def forward(
        self, rows: Tensor, causal_bias: Tensor, others: KeysValues, bias: Tensor
    ) -> Tensor:
        """Take all steps `(B, M, H)` at once. `others` and `bias` are for the cross-attention."""
        rows = rows + self.attention(layer_norm(rows), causal_bias)
        return self._after_self_attention(rows, others, bias)

    def step(
        self, rows: Tensor, earlier: KeysValues, others: KeysValues, bias: Tensor
    ) -> tuple[Tensor, KeysValues]:
        """Take one step for rows `(B, K, H)`. `earlier` is as in `SelfAttention.step`."""
        attended, extended = self.attention.step(layer_norm(rows), earlier)
        return self._after_self_attention(rows + attended, others, bias), extended

    def compiled_step(self, others: KeysValues, bias: Tensor) -> "Step | None":
        """A compiled kernel that computes `step` with these `others` and `bias`.

        Returns None if the layer was subclassed, patched or hooked.
        """
        maps = prepare(self, self._built, self._maps) if type(self) is DecoderLayer else None
        if maps is None:
            return None
        from ptrnet.kernels.decoder_layer_cpu import Step  # imports numba

        return Step(self.attention.heads, others, bias, maps)

    def _maps(self) -> Sequence[nn.Linear]:
        (first, _, second), attention, cross = self.feed_forward, self.attention, self.cross
        maps = attention.inward, attention.outward, cross.query, cross.outward, first, second
        return cast("tuple[nn.Linear, ...]", maps)

    def _after_self_attention(self, rows: Tensor, others: KeysValues, bias: Tensor) -> Tensor:
        rows = rows + self.cross(layer_norm(rows), others, bias)
        return rows + self.feed_forward(layer_norm(rows))
