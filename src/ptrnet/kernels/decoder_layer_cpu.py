"""A compiled step of a transformer's decoder layer on a CPU, for few prefixes.

The formulas are in `ptrnet.models.parts.attention`. The module `attention` computes all other
cases: with gradients, on a GPU, in other types, and while PyTorch traces, compiles or exports. For
one prefix, PyTorch needs about fifty operations. Starting these operations takes longer than their
arithmetic.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ptrnet.errors import ShapeError
from ptrnet.kernels.numerics import as_array, exp32, reassociating_inline, reassociating_jit

# Maximum number of multiplications by weights, for all prefixes together. For more, PyTorch is
# faster, because its products read the weights once for many rows.
MAX_PRODUCTS = 1_500_000

_ZERO, _ONE = np.float32(0), np.float32(1)
_EPSILON = np.float32(1e-5)  # the default of `torch.nn.functional.layer_norm`


class Step:
    """Function that computes a layer's steps in decoding. All steps attend to the same rows.

    All tensors are float32 on a CPU. Make a new object if the weights change.

    Args:
        heads: number of heads of both attentions.
        others: keys and values `(B, heads, L, D)` of the rows that cross-attention attends to.
        bias: `(B, 1, 1, L)`, -inf on padding, which comes last.
        maps: six linear maps: self-attention's input and output, cross-attention's queries and
            output, and the two maps of the feed-forward network.
    """

    def __init__(
        self,
        heads: int,
        others: tuple[Tensor, Tensor],
        bias: Tensor,
        maps: Sequence[torch.nn.Linear],
    ) -> None:
        self._heads = heads
        self._others = [as_array(tensor) for tensor in (*others, bias[:, 0, 0])]
        self._weights = tuple(as_array(part.weight) for part in maps)
        self._biases = tuple(as_array(part.bias) for part in maps)
        self._max_rows = MAX_PRODUCTS // sum(weight.size for weight in self._weights)

    def is_fast(self, rows: Tensor) -> bool:
        """Whether this kernel is faster than PyTorch for rows `(B, K, H)`."""
        return rows.shape[0] * rows.shape[1] <= self._max_rows

    def __call__(
        self, rows: Tensor, earlier: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Compute `DecoderLayer.step` for rows `(B, K, H)` and the t earlier tokens of each.

        Earlier keys and values are `(B, K, t, H)`, and those that are returned `(B, K, t + 1, H)`.
        Raises ShapeError if the shapes do not fit each other.
        """
        batch, prefixes, units = rows.shape
        steps = earlier[0].shape[2]
        for past in earlier:
            if past.shape != (batch, prefixes, steps, units) or batch != len(self._others[0]):
                raise ShapeError(
                    f"expected keys and values of {len(self._others[0])} x {prefixes} prefixes of "
                    f"{units} units, got {tuple(past.shape)} for rows {tuple(rows.shape)}"
                )
        rows = rows.clone(memory_format=torch.contiguous_format)
        keys, values = rows.new_empty(2, batch, prefixes, steps + 1, units)
        keys[:, :, :steps], values[:, :, :steps] = earlier
        arrays = map(as_array, (rows, keys, values))
        step(self._heads, *arrays, *self._others, self._weights, self._biases)
        return rows, (keys, values)


@reassociating_jit
def step(heads, rows, keys, values, other_keys, other_values, bias, weights, biases):
    """Replace `rows` by the layer's outputs in place, and write the last tokens' keys and values.

    The loop computes one prefix after another, so that a prefix's numbers stay in the processor's
    first cache.

    Args:
        heads: number of heads of both attentions.
        rows: `(B, K, H)`.
        keys: `(B, K, t + 1, H)` keys of the prefixes' tokens. The last token's keys are written.
        values: `(B, K, t + 1, H)` values of the prefixes' tokens, written in the same way.
        other_keys: `(B, heads, L, D)` keys of the rows that cross-attention attends to.
        other_values: `(B, heads, L, D)` values of these rows.
        bias: `(B, L)`, -inf on padding, which comes last.
        weights: the weights `(outputs, inputs)` of the six maps, see `Step`.
        biases: the biases of the six maps.
    """
    batch, prefixes, units = rows.shape
    last = keys.shape[2] - 1
    normed, attended = np.empty(units, np.float32), np.empty(units, np.float32)
    inward = np.empty(3 * units, np.float32)
    inner = np.empty(len(biases[4]), np.float32)
    outward = np.empty(units, np.float32)
    scores = np.empty(max(last + 1, bias.shape[1]), np.float32)
    head_units = units // heads
    for b in range(batch):
        others = bias.shape[1]  # skip the padding at the end
        while others > 0 and bias[b, others - 1] == -np.inf:
            others -= 1
        for i in range(prefixes):
            x = rows[b, i]
            _normalize(x, normed)
            _map(weights[0], biases[0], normed, inward)
            for u in range(units):
                keys[b, i, last, u] = inward[units + u]
                values[b, i, last, u] = inward[2 * units + u]
            for head in range(heads):
                first = head * head_units
                past = keys[b, i], values[b, i]
                _attend(inward, *past, last + 1, first, first, head_units, scores, attended)
            _map(weights[1], biases[1], attended, outward)
            _add(outward, x)

            _normalize(x, normed)
            _map(weights[2], biases[2], normed, inward)
            for head in range(heads):
                first = head * head_units
                rest = other_keys[b, head], other_values[b, head]
                _attend(inward, *rest, others, first, 0, head_units, scores, attended)
            _map(weights[3], biases[3], attended, outward)
            _add(outward, x)

            _normalize(x, normed)
            _map(weights[4], biases[4], normed, inner)
            for u in range(len(inner)):
                inner[u] = max(inner[u], _ZERO)
            _map(weights[5], biases[5], inner, outward)
            _add(outward, x)


@reassociating_inline
def _attend(queries, keys, values, count, first, column, units, scores, attended):
    """Let one head of `units` units attend to `count` keys. Write its output into `attended`.

    The head's units begin at `first` in `queries` and `attended`, and at `column` in each key and
    value.
    """
    scale = np.float32(1 / math.sqrt(units))
    for j in range(count):
        score = _ZERO
        for d in range(units):
            score += queries[first + d] * keys[j, column + d]
        scores[j] = score * scale
    _softmax(scores, count)
    for d in range(units):
        attended[first + d] = _ZERO
    for j in range(count):
        for d in range(units):
            attended[first + d] += scores[j] * values[j, column + d]


@reassociating_inline
def _map(weight, bias, x, out):
    for u in range(weight.shape[0]):
        total = _ZERO
        for v in range(weight.shape[1]):
            total += weight[u, v] * x[v]
        out[u] = total + bias[u]


@reassociating_inline
def _add(x, to):
    for u in range(len(x)):
        to[u] += x[u]


@reassociating_inline
def _normalize(x, out):
    """Write `x` into `out`, shifted and scaled to mean 0 and variance 1."""
    mean, variance = _ZERO, _ZERO
    for u in range(len(x)):
        mean += x[u]
    mean /= np.float32(len(x))
    for u in range(len(x)):
        variance += (x[u] - mean) * (x[u] - mean)
    scale = _ONE / np.sqrt(variance / np.float32(len(x)) + _EPSILON)
    for u in range(len(x)):
        out[u] = (x[u] - mean) * scale


@reassociating_inline
def _softmax(scores, count):
    largest, total = scores[0], _ZERO
    for j in range(count):
        largest = max(largest, scores[j])
    for j in range(count):
        scores[j] = exp32(scores[j] - largest)
    for j in range(count):
        total += scores[j]
    for j in range(count):
        scores[j] /= total
