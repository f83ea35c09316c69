"""The compiled kernel: one prefix after the other, its numbers in the processor's first cache."""

import math

import numpy as np

from ptrnet.kernels.numerics import exp32, reassociating_inline, reassociating_jit

_ZERO, _ONE = np.float32(0), np.float32(1)
_EPSILON = np.float32(1e-5)  # of `torch.nn.functional.layer_norm`


@reassociating_jit
def step(heads, rows, keys, values, other_keys, other_values, bias, weights, biases):
    """Replaces rows by the layer's outputs, and writes their keys and values.

    Args:
        heads: of both attentions.
        rows: `(B, K, H)`.
        keys: `(B, K, t + 1, H)` of the prefixes' tokens; the last is written.
        values: likewise.
        other_keys: `(B, heads, L, D)` of the rows that cross-attention attends to.
        other_values: likewise.
        bias: `(B, L)`, -inf on padding, which comes last.
        weights: six `(outputs, inputs)`: of self-attention inward and outward, of cross-attention's
            queries and outward, of the feed-forward's two maps.
        biases: theirs.
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
        others = bias.shape[1]
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
    """One head: `units` entries from `first` on, of keys and values from their `column` on."""
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
    """Writes `x` into `out`, moved and scaled to mean 0 and variance 1."""
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
