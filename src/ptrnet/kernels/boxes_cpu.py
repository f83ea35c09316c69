"""The tables of one page of `box-ptr-net`, compiled for a CPU.

`ptrnet.models.box_ptr_net` has the formulas, and computes all other cases: several pages, with
gradients, on a GPU, in other types than float32, and while PyTorch traces, compiles or exports. For
a page of 40 boxes, PyTorch needs a few hundred operations, and starting them takes longer than
their arithmetic.

Arrays have a column for each box: the rows of states are units. Columns are padded to whole
vectors. The numbers in padded columns reach no other column.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ptrnet.kernels.boxes import NUM_FEATURES, NUM_PAIR_FEATURES, SCALES, SMALLEST, WAVES
from ptrnet.kernels.numerics import (
    as_array,
    exp32,
    in_order_inline,
    in_order_inner,
    in_order_jit,
    log32,
)
from ptrnet.kernels.vectors import (
    COLUMNS,
    LANES,
    add_product,
    load_vector,
    multiply_add,
    spread,
    store_vector,
)

_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)
_EPSILON = np.float32(1e-5)  # the default of `torch.nn.functional.layer_norm`
_SMALLEST = np.float32(SMALLEST)
_SCALES, _WAVES = tuple(map(np.float32, SCALES)), tuple(map(np.float32, WAVES))

Array = NDArray[np.float32]
# The weights `(outputs, inputs)` and the biases `(outputs,)` of some linear maps.
Maps = tuple[tuple[Array, ...], tuple[Array, ...]]


class Weights(NamedTuple):
    """The weights of a network of H units, in float32."""

    heads: int  # of each layer's attention
    labels: Array  # (labels, H)
    boxes: Maps  # one map
    pairs: Maps  # three maps, with ReLU between them
    # For each layer: attention's input and output, and the two maps of the feed-forward network.
    layers: Sequence[Maps]
    outputs: Maps  # queries, keys and first


def maps_of(*parts: nn.Module) -> Maps:
    """Return the weights and the biases of linear maps."""
    weights, biases = zip(*(part.parameters() for part in parts), strict=True)
    return tuple(map(as_array, weights)), tuple(map(as_array, biases))


class Tables(NamedTuple):
    """The tables of `EncodedBoxes` for a page of N boxes."""

    follow: Array  # (1 + N, 1 + N)
    before: Array  # (1 + N, 1 + N)
    remaining: Array  # (1 + N,)


def tables_of_page(weights: Weights, inputs: Tensor, end_score: float) -> Tables:
    """Compute the tables of a page in float32 on a CPU.

    Args:
        weights: of the network.
        inputs: `(N, 5)` boxes in the unit square, and their labels, see `LABEL`. N is at least 1.
        end_score: the score of END.

    Raises:
        IndexError: a label is not in the network's table.
    """
    n, page, heads = len(inputs), as_array(inputs), weights.heads
    follow, before = np.zeros((2, 1 + n, 1 + n), np.float32)
    follow[:, 0] = end_score
    tables = Tables(follow, before, np.zeros(1 + n, np.float32))
    width = -(-n // COLUMNS) * COLUMNS
    states = np.empty((weights.labels.shape[1], width), np.float32)
    pairs = np.empty((n, len(weights.pairs[1][-1]), width), np.float32)
    if not embed(page, weights.labels, *weights.boxes, states):
        raise IndexError(f"expected labels from 0 to {len(weights.labels) - 1}")
    score_pairs(page, *weights.pairs, pairs)
    for layer, maps in enumerate(weights.layers):
        encode_layer(states, heads, pairs, 2 + layer * heads, *maps)
    fill_tables(states, pairs, *weights.outputs, *tables)
    return tables


def walk_page(tables: Tables) -> tuple[NDArray[np.int64], float]:
    """Return the likeliest token of each step `(1 + N,)`, END last, and their log-probability."""
    tokens = np.zeros(len(tables.remaining), np.int64)
    return tokens, walk(*tables, tokens)


@in_order_jit
def embed(page, vectors, weights, biases, states):
    """Write the first states `(H, W)` of the boxes of a page `(n, 5)`.

    Returns:
        Whether all labels have vectors `(labels, H)`. At the first label that has none, the kernel
        stops, because it would read beyond its arrays.
    """
    features = np.zeros((NUM_FEATURES, states.shape[1]), np.float32)
    for j in range(len(page)):
        for edge in range(4):
            features[edge, j] = page[j, edge]
            for k in range(len(_WAVES)):
                features[8 + 4 * k + edge, j] = np.sin(_WAVES[k] * page[j, edge])
        for axis in range(2):
            size = page[j, 2 + axis] - page[j, axis]
            features[4 + axis, j] = size
            features[6 + axis, j] = log32(max(size, _SMALLEST))
    _map(weights[0], biases[0], features, states)
    for j in range(len(page)):
        label = np.rint(page[j, 4] * np.float32(len(vectors) - 1))
        if not 0 <= label < len(vectors):
            return False
        for u in range(len(states)):
            states[u, j] += vectors[int(label), u]
    return True


@in_order_jit
def score_pairs(page, weights, biases, scores):
    """Write the scores `(n, C, W)` of pairs of a page's boxes: of box j (row) as seen from i."""
    n, _, width = scores.shape
    edges, sizes = np.zeros((4, width), np.float32), np.zeros((2, width), np.float32)
    for i in range(width):
        for edge in range(4):
            edges[edge, i] = page[min(i, n - 1), edge]
        for axis in range(2):
            sizes[axis, i] = max(edges[2 + axis, i] - edges[axis, i], _SMALLEST)
    features = np.empty((NUM_PAIR_FEATURES, width), np.float32)
    first = np.empty((len(biases[0]), width), np.float32)
    second = np.empty((len(biases[1]), width), np.float32)
    for j in range(n):
        _compare(j, edges, sizes, features)
        _map(weights[0], biases[0], features, first)
        _rectify(first)
        _map(weights[1], biases[1], first, second)
        _rectify(second)
        _map(weights[2], biases[2], second, scores[j])


@in_order_inner
def _compare(j, edges, sizes, features):
    """Write `pair_features` of box j relative to all boxes."""
    width = edges.shape[1]
    for edge in range(4):
        other = edge ^ 2  # the opposite edge
        for i in range(width):
            features[edge, i] = edges[edge, j] - edges[edge, i]
            features[4 + edge, i] = edges[edge, j] - edges[other, i]
    for k in range(len(_SCALES)):
        for f in range(8):
            for i in range(width):
                features[8 + 8 * k + f, i] = _clip(_SCALES[k] * features[f, i])
    for axis in range(2):
        high, low, size = edges[2 + axis, j], edges[axis, j], sizes[axis, j]
        for i in range(width):
            shared = min(high, edges[2 + axis, i]) - max(low, edges[axis, i])
            overlap = shared / min(size, sizes[axis, i])
            features[NUM_PAIR_FEATURES - 2 + axis, i] = _clip(overlap)


@in_order_inline
def _clip(x):
    return min(max(x, -_ONE), _ONE)


@in_order_jit
def encode_layer(states, heads, pairs, first, weights, biases):
    """Compute an `EncoderLayer` in place.

    Args:
        states: `(H, W)`.
        heads: number of heads.
        pairs: `(n, C, W)`. From score `first` on, a pair has the bias of each head's attention.
        first: see `pairs`.
        weights, biases: of four maps, see `Weights`.
    """
    n, _, width = pairs.shape
    units = len(states)
    head_units = units // heads
    scale = np.float32(1 / math.sqrt(head_units))
    normed = np.empty((units, width), np.float32)
    inward = np.empty((3 * units, width), np.float32)
    attended = np.zeros((units, width), np.float32)
    scores = np.empty((n, width), np.float32)
    inner = np.empty((len(biases[2]), width), np.float32)
    _normalize(states, normed)
    _map(weights[0], biases[0], normed, inward)
    for u in range(units):
        for i in range(width):
            inward[u, i] *= scale
    for head in range(heads):
        begin, end = head * head_units, (head + 1) * head_units
        for j in range(n):
            for i in range(width):
                scores[j, i] = pairs[j, first + head, i]
        add_product(inward[units + begin : units + end].T, inward[begin:end], scores)
        _softmax(scores)
        add_product(inward[2 * units + begin : 2 * units + end], scores, attended[begin:end])
    _add_map(weights[1], biases[1], attended, states)
    _normalize(states, normed)
    _map(weights[2], biases[2], normed, inner)
    _rectify(inner)
    _add_map(weights[3], biases[3], inner, states)


@in_order_jit
def fill_tables(states, pairs, weights, biases, follow, before, remaining):
    """Write the tables of a page.

    Args:
        states: `(H, W)`, from the last layer.
        pairs: `(n, C, W)`. The first two scores of a pair are parts of `before` and `follow`.
        weights, biases: of three maps, see `Weights`.
        follow, before, remaining: see `Tables`. Column 0, and row 0 of `before`, stay as they are.
    """
    (units, width), n = states.shape, len(pairs)
    scale = np.float32(1 / math.sqrt(units))
    normed = np.empty((units, width), np.float32)
    queries = np.empty((2 * units, width), np.float32)
    keys = np.empty((2 * units, width), np.float32)
    first = np.empty((1, width), np.float32)
    scores = np.empty((n, width), np.float32)
    _normalize(states, normed)
    _map(weights[0], biases[0], normed, queries)
    _map(weights[1], biases[1], normed, keys)
    _map(weights[2], biases[2], normed, first)
    for table in range(2):
        for i in range(n):
            for j in range(width):
                scores[i, j] = _ZERO
        begin, end = table * units, (table + 1) * units
        add_product(queries[begin:end].T, keys[begin:end], scores)
        for i in range(n):
            for j in range(n):
                scores[i, j] = scores[i, j] * scale + pairs[j, table, i]
            if table == 0:
                for j in range(n):
                    x = scores[i, j]
                    softplus = max(x, _ZERO) + log32(_ONE + exp32(-abs(x)))
                    scores[i, j] = _ZERO if i == j else softplus
                for j in range(n):
                    remaining[1 + j] += scores[i, j]
                    before[1 + i, 1 + j] = scores[i, j]
                before[1 + i, 1 + i] = -np.inf
            else:
                for j in range(n):
                    follow[1 + i, 1 + j] = scores[i, j]
    for j in range(n):
        follow[0, 1 + j] = first[0, j]


@in_order_jit
def walk(follow, before, remaining, tokens):
    """Write the likeliest token of each step until END, and return the log-probability of all."""
    remaining, last, log_prob = remaining.copy(), 0, 0.0
    scores = np.empty(len(remaining), np.float32)
    for step in range(len(tokens)):
        best, total = 0, _ZERO
        for t in range(len(scores)):
            remaining[t] -= before[last, t]
            scores[t] = follow[last, t] - remaining[t]
        for t in range(len(scores)):
            if scores[t] > scores[best]:
                best = t
        for t in range(len(scores)):
            total += exp32(scores[t] - scores[best])
        log_prob -= math.log(total)
        if best == 0:
            break
        last = tokens[step] = best
    return log_prob


# In these two functions, LLVM would vectorise the loop over columns for more columns than a page
# has, and compute the rest one by one.
@in_order_inner
def _map(weight, bias, x, out):
    """Write `weight @ x + bias`."""
    for u in range(len(out)):
        for i in range(0, out.shape[1], LANES):
            store_vector(out, u, i, spread(bias[u]))
    add_product(weight, x, out)


@in_order_inner
def _add_map(weight, bias, x, out):
    """Add `weight @ x + bias` to `out`."""
    for u in range(len(out)):
        for i in range(0, out.shape[1], LANES):
            store_vector(out, u, i, multiply_add(_ONE, load_vector(out, u, i), spread(bias[u])))
    add_product(weight, x, out)


@in_order_inner
def _rectify(x):
    numbers = x.reshape(-1)  # a single loop, for the same reason
    for k in range(len(numbers)):
        # LLVM would turn `max` into a branch, and not vectorise it. The sum is exact.
        numbers[k] = _HALF * (numbers[k] + abs(numbers[k]))


@in_order_inner
def _normalize(rows, out):
    """Write columns, shifted and scaled to mean 0 and variance 1."""
    units, width = rows.shape
    means, scales = np.zeros(width, np.float32), np.zeros(width, np.float32)
    for u in range(units):
        for i in range(width):
            means[i] += rows[u, i]
    for i in range(width):
        means[i] /= np.float32(units)
    for u in range(units):
        for i in range(width):
            scales[i] += (rows[u, i] - means[i]) * (rows[u, i] - means[i])
    for i in range(width):
        scales[i] = _ONE / np.sqrt(scales[i] / np.float32(units) + _EPSILON)
    for u in range(units):
        for i in range(width):
            out[u, i] = (rows[u, i] - means[i]) * scales[i]


@in_order_inner
def _softmax(scores):
    """Replace the scores of each column by probabilities."""
    width = scores.shape[1]
    largest, total = scores[0].copy(), np.zeros(width, np.float32)
    for j in range(1, len(scores)):
        for i in range(width):
            largest[i] = max(largest[i], scores[j, i])
    for j in range(len(scores)):
        for i in range(width):
            scores[j, i] = exp32(scores[j, i] - largest[i])
            total[i] += scores[j, i]
    for j in range(len(scores)):
        for i in range(width):
            scores[j, i] /= total[i]
