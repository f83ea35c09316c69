"""Multi-head attention and the layers that are built of it (Vaswani et al. 2017), norms first.

The residual stream keeps the type of its input; what autocast rounds are the layers' products.
Norms have no weights: a linear map follows each, which would absorb them.

In shapes, D is the units of a head, H / heads; M the rows that attend, L those attended to.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ptrnet.kernels.eager import is_eager, is_plain_float32, is_unchanged

if TYPE_CHECKING:
    from ptrnet.kernels.decoder_layer import Step


class Elements(nn.Module):
    """`W [p; sin(pi p); cos(pi p); sin(2 pi p); ...] + b`, and sines of the index where it is seen.

    In float32 (or better) under autocast: features keep all their digits.

    Args:
        features: numbers in an element, d.
        units: size of the output, H.
        octaves: sines and cosines of each feature, each of twice the frequency before.
        see_indices: whether `sin` and `cos` of `j / 10000^(2k / H)` are added, j the index of the
            element (Vaswani et al. 2017).
    """

    def __init__(self, features: int, units: int, octaves: int, see_indices: bool) -> None:
        super().__init__()
        self.octaves, self.see_indices = octaves, see_indices
        self.map = nn.Linear(features * (1 + 2 * octaves), units)

    def forward(self, inputs: Tensor) -> Tensor:
        """`(B, N, H)` of `(B, N, d)`."""
        with torch.autocast(inputs.device.type, enabled=False):
            angles = [2**k * math.pi * inputs for k in range(self.octaves)]
            waves = [wave(angle) for angle in angles for wave in (torch.sin, torch.cos)]
            rows: Tensor = self.map(torch.cat([inputs, *waves], -1))
            return rows + index_encoding(rows) if self.see_indices else rows


def index_encoding(rows: Tensor) -> Tensor:
    """`(N, H)`, what is added to `(B, N, H)` rows: sines of the indices, then their cosines."""
    _, n, units = rows.shape
    exponents = torch.arange(-(-units // 2), device=rows.device, dtype=rows.dtype)
    indices = torch.arange(n, device=rows.device, dtype=rows.dtype)
    angles = indices[:, None] * torch.exp(exponents * (-2 * math.log(10_000) / units))
    return torch.cat([angles.sin(), angles.cos()], -1)[:, :units]


def normal_vectors(*shape: int, divisor: float = 1.0) -> Tensor:
    """Normal numbers, for learned vectors to start from; any where tensors have no memory.

    Drawing such would import a compiler, which takes longer than all else that loading does.

    Args:
        shape: of the tensor.
        divisor: of the numbers; 10 makes their standard deviation 0.1.
    """
    numbers = torch.empty(shape)
    return numbers if numbers.is_meta else numbers.normal_() / divisor


KeysValues = tuple[Tensor, Tensor]

# What is computed at a time where nothing has to be kept: 1 MB of scores, which stays in a cache,
MAX_SCORES = 2**18
MAX_ROWS = 2**11  # and half as much of the rows between an encoder's layers, of 64 units.


def attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """`softmax(q k' / sqrt(D) + bias) v` in each head, heads side by side: `(..., M, H)`.

    Written out, and with the softmax in float32 or better: on a CPU the backward pass of PyTorch's
    fused attention takes several times as long in bfloat16, and cannot be differentiated again.

    Args:
        queries: `(..., heads, M, D)`.
        keys: `(..., heads, L, D)`.
        values: `(..., heads, L, D)`.
        bias: 0 or -inf, of a shape that broadcasts to `(..., heads, M, L)`; see `attention_bias`.
    """
    is_kept = torch.is_grad_enabled() or queries.dim() != 4 or queries.device.type != "cpu"
    # Before any size is looked at: an export would serve no others.
    if is_kept or not is_eager(queries, keys, values, bias):
        return _attend(queries, keys, values, bias)
    batch, heads, steps, _ = queries.shape
    scores_of_row = heads * keys.shape[-2]
    if batch * steps * scores_of_row <= MAX_SCORES:
        return _attend(queries, keys, values, bias)
    k = max(1, MAX_SCORES // (scores_of_row * steps))  # examples at a time
    m = min(steps, max(1, MAX_SCORES // scores_of_row))  # and rows
    bias = bias.expand(batch, heads, steps, keys.shape[-2])
    attended = values.new_empty(batch, steps, heads * values.shape[-1])
    for i in range(0, batch, k):
        some = slice(i, i + k)
        for j in range(0, steps, m):
            rows = slice(j, j + m)
            attended[some, rows] = _attend(
                queries[some, :, rows], keys[some], values[some], bias[some, :, rows]
            )
    return attended


def _attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """The formula of `attend`."""
    scores = (queries * (1 / math.sqrt(queries.shape[-1]))) @ keys.transpose(-1, -2)
    attended = (scores + bias).softmax(-1).to(values.dtype) @ values
    return attended.transpose(-2, -3).flatten(-2)


def split_heads(rows: Tensor, heads: int) -> Tensor:
    """`(..., M, H)` as `(..., heads, M, H / heads)`."""
    return rows.view(*rows.shape[:-1], heads, rows.shape[-1] // heads).transpose(-2, -3)


def layer_norm(rows: Tensor) -> Tensor:
    """Each row with mean 0 and variance 1."""
    return nn.functional.layer_norm(rows, (int(rows.shape[-1]),))  # constant where it is traced


def attention_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as a term of scores: 0 where it is True, -inf elsewhere."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def causal_mask(steps: int, device: torch.device) -> Tensor:
    """`(M, M)` boolean for M `steps`: True where a step may see a step: earlier ones, itself."""
    positions = torch.arange(steps, device=device)
    return positions <= positions[:, None]


class SelfAttention(nn.Module):
    """Rows attend to each other."""

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inward, self.outward = nn.Linear(units, 3 * units), nn.Linear(units, units)

    def forward(self, rows: Tensor, bias: Tensor) -> Tensor:
        """`(B, L, H)` of `(B, L, H)` rows; the bias broadcasts to `(B, heads, L, L)`."""
        queries, keys, values = (split_heads(x, self.heads) for x in self.inward(rows).chunk(3, -1))
        return self.outward(attend(queries, keys, values, bias))

    def step(self, rows: Tensor, earlier: KeysValues) -> tuple[Tensor, KeysValues]:
        """The newest row `(..., H)` of each sequence attends to the earlier ones and to itself.

        `earlier` are their keys and values `(..., t, H)`. Returns `(..., H)`, and `earlier` with
        the newest row's keys and values.
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
    """Rows attend to other rows."""

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.others = nn.Linear(units, units), nn.Linear(units, 2 * units)
        self.outward = nn.Linear(units, units)

    def keys_values(self, others: Tensor) -> KeysValues:
        """Keys and values `(B, heads, L, D)` of the rows `(B, L, H)`, to be computed only once."""
        parts = _parts(others, self.others)
        if len(parts) < 2:
            keys, values = self.others(others).chunk(2, -1)
            return (
                split_heads(keys, self.heads).contiguous(),
                split_heads(values, self.heads).contiguous(),
            )
        heads = split_heads(others, self.heads)
        keys, values = others.new_empty(heads.shape), others.new_empty(heads.shape)
        for part in parts:
            both = self.others(others[part]).chunk(2, -1)
            keys[part], values[part] = (split_heads(one, self.heads) for one in both)
        return keys, values

    def forward(self, rows: Tensor, others: KeysValues, bias: Tensor) -> Tensor:
        """`(B, M, H)` of `(B, M, H)` rows; the bias broadcasts to `(B, heads, M, L)`."""
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
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor, bias: Tensor) -> Tensor:
        rows = rows + self.dropout(self.attention(layer_norm(rows), bias))
        return rows + self.dropout(self.feed_forward(layer_norm(rows)))


def encode_rows(layers: Iterable[nn.Module], rows: Tensor, bias: Tensor) -> Tensor:
    """What `EncoderLayer`s, one after another, make of `(B, L, H)` rows.

    Args:
        layers: that all attend with the same bias.
        rows: of B examples; overwritten where they are encoded part by part.
        bias: 0 or -inf, `(B, 1, 1, L)`; see `attention_bias`.
    """
    layers = tuple(layers)
    parts = _parts(rows, *layers)
    if len(parts) < 2:
        return _encode_rows(layers, rows, bias)
    for part in parts:
        rows[part] = _encode_rows(layers, rows[part], bias[part])
    return rows


def _encode_rows(layers: tuple[nn.Module, ...], rows: Tensor, bias: Tensor) -> Tensor:
    for layer in layers:
        rows = layer(rows, bias)
    return rows


_PARTS = (EncoderLayer, SelfAttention, FeedForward, nn.Linear, nn.ReLU, nn.Dropout)


def _parts(rows: Tensor, *layers: nn.Module) -> list[slice]:
    """The examples of `(B, L, H)` rows that layers take at a time: MAX_ROWS without gradients.

    All of them at once if autograd or a forward hook is active.
    """
    # Before any size is looked at, as in `attend`.
    if not is_plain_float32(rows) or not all(is_unchanged(layer, _PARTS) for layer in layers):
        return [slice(None)]
    examples = max(1, MAX_ROWS // rows.shape[1])
    return [slice(i, i + examples) for i in range(0, rows.shape[0], examples)]


class DecoderLayer(nn.Module):
    """An encoder's layer with cross-attention between its two parts."""

    def __init__(self, units: int, heads: int, inner_units: int) -> None:
        super().__init__()
        self.attention = SelfAttention(units, heads)
        self.cross = CrossAttention(units, heads)
        self.feed_forward = FeedForward(units, inner_units)

    def forward(
        self, rows: Tensor, causal_bias: Tensor, others: KeysValues, bias: Tensor
    ) -> Tensor:
        """All steps `(B, M, H)` at once; `others` and `bias` are those of the cross-attention."""
        rows = rows + self.attention(layer_norm(rows), causal_bias)
        return self._after_self_attention(rows, others, bias)

    def step(
        self, rows: Tensor, earlier: KeysValues, others: KeysValues, bias: Tensor
    ) -> tuple[Tensor, KeysValues]:
        """The newest rows `(B, K, H)`; `earlier` is of those before, each `(B, K, t, H)`."""
        attended, extended = self.attention.step(layer_norm(rows), earlier)
        return self._after_self_attention(rows + attended, others, bias), extended

    def compiled_step(self, others: KeysValues, bias: Tensor) -> "Step | None":
        """`step` with these `others` and `bias`, as a compiled kernel; None of a changed layer."""
        kinds = (DecoderLayer, SelfAttention, CrossAttention, FeedForward, nn.Linear, nn.ReLU)
        if not is_unchanged(self, kinds) or len(self.feed_forward) != 3:
            return None
        (first, _, second), attention, cross = self.feed_forward, self.attention, self.cross
        maps = (attention.inward, attention.outward, cross.query, cross.outward, first, second)
        from ptrnet.kernels.decoder_layer import Step  # imports numba

        return Step(attention.heads, others, bias, maps)  # type: ignore[arg-type]

    def _after_self_attention(self, rows: Tensor, others: KeysValues, bias: Tensor) -> Tensor:
        rows = rows + self.cross(layer_norm(rows), others, bias)
        return rows + self.feed_forward(layer_norm(rows))
