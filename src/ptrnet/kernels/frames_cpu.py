"""Edge frames, compiled for a CPU: scores of tokens from their positions relative to an edge.

`frames.py` has the formulas, and computes all other cases: with gradients, on a GPU, in other types
than float32, and while PyTorch traces, compiles or exports the model. The formulas are many
operations on few numbers. PyTorch takes 20 times as long as this kernel for one prefix, and three
times as long for many prefixes.

A round adds one term to the score of each token. The kernel computes all rounds of a prefix
together, so that the prefix's numbers stay in the processor's first cache. Each loop over tokens
does little and uses few arrays, so that LLVM vectorises the loop. Rows are padded to whole vectors,
so that the loops over padded rows have no remainder.
"""

from collections.abc import Sequence

import numpy as np
from torch import Tensor, contiguous_format

from ptrnet.errors import ShapeError
from ptrnet.kernels.frames import MIN_DIST
from ptrnet.kernels.numerics import (
    as_array,
    exact_inline,
    log32,
    reassociating_inline,
    reassociating_jit,
)
from ptrnet.kernels.threads import even_cuts, run_slices

MIN_ROWS_OF_A_THREAD = 16  # fewer prefixes are not worth another thread
LANES = 32  # numbers that LLVM computes together: four vectors of 256 bits
FEATURES_PER_PASS = 4  # a pass over `hidden` adds the terms of this many features at once

_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)
_MIN_DIST, _TINY = np.float32(MIN_DIST), np.float32(1e-30)

# Rows of features. Each row has a number for every token. `_COSINE_LOGS`, `_SINE_LOGS` and
# `_LINE_LOGS` are the first of three rows each, with logarithms on three scales.
_COSINE, _SINE, _COSINE_LOGS, _SINE_LOGS, _LINE_LOGS, _LOG_DIST = 0, 1, 2, 5, 8, 11
_IS_FIRST, _IS_LAST, _IS_TOKEN, _IS_SPECIAL, _ROWS = 12, 13, 14, 15, 16
# Features that all tokens of a prefix share, 0 or 1. In order:
# - whether the answer has an element
# - whether there is an open edge
# - whether the tail (beginning) of the open edge is known
# - whether the answer's first element is known
_HAS_ELEMENT, _HAS_EDGE, _HAS_TAIL, _HAS_FIRST, _FEATURES = 16, 17, 18, 19, 20
# Columns of the weights of a hidden unit: 20 features, then the bias and the score's weight.
_BIAS, _SCORE, _COLUMNS = 20, 21, 22

# The features of the first round and of further rounds, in the order of the weights.
FIRST = [_COSINE, _SINE, _LOG_DIST, _IS_FIRST, _IS_LAST]
FIRST_OPEN = [*FIRST, *range(_SINE_LOGS, _LINE_LOGS), _HAS_EDGE, _HAS_TAIL, _HAS_FIRST]
FURTHER = [*range(_IS_SPECIAL), _HAS_ELEMENT]
FURTHER_OPEN = [*FURTHER, _HAS_EDGE, _IS_SPECIAL]

# Rows of tokens' positions relative to the frame of a prefix: coordinates, distance, and the
# distance's logarithm. The rows _SCALE and _LINE_DIST are scratch memory.
_X, _Y, _DIST, _LOG, _SCALE, _LINE_DIST, _SEEN = range(7)


class CompiledFrames:
    """Function that adds the terms of all rounds to scores. All steps have the same points.

    All tensors are float32 on a CPU. Make a new object if weights, points or keys change.

    Args:
        points: `(B, N, 2)` coordinates of the elements.
        keys: `(U, B, 1, S + N)` keys, projected to the U hidden units of a round.
        rounds: the weights W `(U, F)`, b `(U,)` and w `(1, U)` of each round, which adds
            `w' max(0, W f + b)` to the score of a token with the F features f. In the first round,
            projections of the query and of the key are added to b.
        is_open: whether the edges are open edges of a triangulation: edges whose triangle is not
            decided yet.
    """

    def __init__(
        self, points: Tensor, keys: Tensor, rounds: Sequence[Sequence[Tensor]], is_open: bool
    ) -> None:
        self._is_open = is_open
        self._points, self._keys = as_array(points), as_array(keys)
        # (rounds, U, 22): the weights of all features, then bias and score. If a round does not
        # have a feature, the feature's weight is 0.
        self._weights = np.zeros((len(rounds), len(keys), _COLUMNS), np.float32)
        first, further = (FIRST_OPEN, FURTHER_OPEN) if is_open else (FIRST, FURTHER)
        for k, (weight, bias, score) in enumerate(rounds):
            rows = self._weights[k]
            rows[:, further if k else first] = weight.detach()
            rows[:, _BIAS], rows[:, _SCORE] = bias.detach(), score[0].detach()

    def __call__(self, scores: Tensor, ends: Sequence[Tensor], queries: Tensor) -> Tensor:
        """Return the scores `(B, M, S + N)` after all rounds.

        Args:
            scores: `(B, M, S + N)` scores before the rounds, -inf on padding.
            ends: three tensors `(B, M)` of tokens: a `PrefixEnds`, or a `FrontEdge` if `is_open`.
            queries: `(B, M, U)`, projected to the U hidden units of a round.

        Raises:
            ShapeError: the shapes do not fit each other.
            IndexError: an end is not a token.
        """
        expected = (len(self._points), scores.shape[1], self._keys.shape[-1])
        if scores.shape != expected or any(
            t.shape != expected[:2] for t in (*ends, queries[..., 0])
        ):
            raise ShapeError(f"expected scores {expected}, ends and queries of as many prefixes")
        scores = scores.clone(memory_format=contiguous_format)
        array, queries_array = as_array(scores), as_array(queries)
        tokens = tuple(map(as_array, ends))

        def run(k: int, begin: int, end: int) -> None:
            are_tokens = score_prefixes(
                *(begin, end, self._is_open, array, self._points),
                *(tokens, queries_array, self._keys, self._weights),
            )
            if not are_tokens:
                raise IndexError(f"expected ends of edges in 0..{expected[2] - 1}")

        rows = scores.shape[0] * scores.shape[1]
        run_slices(run, even_cuts(len(scores), min(len(scores), rows // MIN_ROWS_OF_A_THREAD)))
        return scores


@reassociating_jit
def score_prefixes(begin, end, is_open, scores, points, ends, queries, keys, weights):
    """Add the terms of all rounds to the scores of instances `begin` to `end - 1`, in place.

    Args:
        begin: the first instance.
        end: the instance after the last.
        is_open: whether `ends` are ends of open edges.
        scores: `(B, M, S + N)`, -inf on padding.
        points: `(B, N, 2)`.
        ends: three arrays `(B, M)` of tokens, as in `CompiledFrames`.
        queries: `(B, M, U)`.
        keys: `(U, B, 1, S + N)`.
        weights: `(rounds, U, 22)`: a weight for each feature, then bias and score.

    Returns:
        Whether all ends are tokens. At the first end that is not a token, the kernel stops, because
        it would read beyond its arrays.
    """
    steps, num_tokens = scores.shape[1:]
    num_specials = num_tokens - points.shape[1]
    width = (num_tokens + LANES - 1) // LANES * LANES
    seen = np.zeros((_SEEN, width), np.float32)
    features = np.zeros((_ROWS, width), np.float32)
    flags = np.zeros(_FEATURES, np.float32)
    hidden = np.zeros(width, np.float32)
    sums = np.zeros(width, np.float32)
    for b in range(begin, end):
        for i in range(steps):
            for t in range(num_tokens):
                sums[t] = scores[b, i, t]
            first, second, third = ends[0][b, i], ends[1][b, i], ends[2][b, i]
            if min(first, second, third) < 0 or max(first, second, third) >= num_tokens:
                return False
            if is_open:
                last = third if third > 0 else second
                x, y = _see(points, b, num_specials, second, 0, last, seen, features, flags)
                if third > 0:
                    x, y = _ONE, _ZERO
                    _open(points, b, num_specials, second, third, seen)
                flags[_HAS_EDGE] = _ONE if third > 0 else _ZERO
                flags[_HAS_TAIL] = _ONE if second > 0 else _ZERO
                flags[_HAS_FIRST] = _ONE if first > 0 else _ZERO
            else:
                x, y = _see(points, b, num_specials, first, second, third, seen, features, flags)
            _measure(seen)
            for k in range(len(weights)):
                log_dist = _ZERO
                if k > 0:
                    token = _argmax(sums, num_tokens)
                    x, y, log_dist = seen[_X, token], seen[_Y, token], seen[_LOG, token]
                    for t in range(width):
                        features[_IS_TOKEN, t] = _ZERO
                    features[_IS_TOKEN, token] = _ONE
                _frame(x, y, log_dist, k == 0, flags[_HAS_ELEMENT], seen, features)
                _weigh(k, b, i, num_tokens, queries, keys, weights, features, flags, hidden, sums)
            for t in range(num_tokens):
                scores[b, i, t] = sums[t]
    return True


@reassociating_inline
def _weigh(k, b, i, num_tokens, queries, keys, weights, features, flags, hidden, sums):
    """Add the terms of round k to the sums of prefix i of instance b."""
    for u in range(weights.shape[1]):
        bias = weights[k, u, _BIAS]
        for f in range(_ROWS, _FEATURES):
            bias += weights[k, u, f] * flags[f]
        if k == 0:
            bias += queries[b, i, u]
            for t in range(num_tokens):
                hidden[t] = keys[u, b, 0, t] + bias
        else:
            for t in range(len(sums)):
                hidden[t] = bias
        for f in range(0, _ROWS, FEATURES_PER_PASS):
            w0, w1 = weights[k, u, f], weights[k, u, f + 1]
            w2, w3 = weights[k, u, f + 2], weights[k, u, f + 3]
            for t in range(len(sums)):
                hidden[t] += (
                    w0 * features[f, t]
                    + w1 * features[f + 1, t]
                    + w2 * features[f + 2, t]
                    + w3 * features[f + 3, t]
                )
        weight = weights[k, u, _SCORE]
        for t in range(len(sums)):
            sums[t] += weight * max(hidden[t], _ZERO)


@reassociating_inline
def _argmax(sums, num_tokens):
    likeliest = 0
    for t in range(num_tokens):
        if sums[t] > sums[likeliest]:
            likeliest = t
    return likeliest


@reassociating_inline
def _coordinates(points, b, num_specials, token):
    """Return the coordinates of a token of instance b, or zeros for a special slot."""
    if token < num_specials:
        return _ZERO, _ZERO
    return points[b, token - num_specials, 0], points[b, token - num_specials, 1]


@exact_inline
def _dot(ux, uy, vx, vy):
    return ux * vx + uy * vy


# Round each product. With an FMA (a multiplication and an addition, rounded once), the cross
# product of a vector with itself would not be exactly 0. The logarithmic scales would turn this
# error into a large feature.
@exact_inline
def _cross(ux, uy, vx, vy):
    return ux * vy - uy * vx


@reassociating_inline
def _length(x, y):
    return max(np.sqrt(x * x + y * y), _MIN_DIST)


@reassociating_inline
def _see(points, b, num_specials, first, previous, last, seen, features, flags):
    """Write the vectors from the last element to all tokens, and some features of the tokens.

    These features mark the elements `first` and `last`, and the special slots. For an open edge,
    `first` is the edge's tail, and `last` is its head (the tail if the edge has no head yet).
    Return the vector of the last edge, from `previous` to `last`, or (0, -1) if there is none.
    """
    first_x, first_y = _coordinates(points, b, num_specials, first)
    last_x, last_y = _coordinates(points, b, num_specials, last)
    previous_x, previous_y = _coordinates(points, b, num_specials, previous)
    flags[_HAS_ELEMENT] = _ONE if last > 0 else _ZERO
    for t in range(num_specials):
        seen[_X, t], seen[_Y, t] = first_x - last_x, first_y - last_y
        features[_IS_FIRST, t] = features[_IS_LAST, t] = _ZERO
        features[_IS_SPECIAL, t] = _ONE
    for k in range(points.shape[1]):
        t, x, y = k + num_specials, points[b, k, 0], points[b, k, 1]
        seen[_X, t], seen[_Y, t] = x - last_x, y - last_y
        features[_IS_FIRST, t] = flags[_HAS_ELEMENT] if x == first_x and y == first_y else _ZERO
        features[_IS_LAST, t] = flags[_HAS_ELEMENT] if x == last_x and y == last_y else _ZERO
        features[_IS_SPECIAL, t] = _ZERO
    if previous == 0:
        return _ZERO, -_ONE
    return last_x - previous_x, last_y - previous_y


@reassociating_inline
def _open(points, b, num_specials, tail, head, seen):
    """Write the position of each token relative to an open edge, as `OpenEdgeFeatures` does."""
    tail_x, tail_y = _coordinates(points, b, num_specials, tail)
    head_x, head_y = _coordinates(points, b, num_specials, head)
    length = _length(head_x - tail_x, head_y - tail_y)
    for t in range(num_specials):
        seen[_X, t], seen[_Y, t] = _ONE, _ZERO
    for k in range(points.shape[1]):
        ux, uy = tail_x - points[b, k, 0], tail_y - points[b, k, 1]
        vx, vy = head_x - points[b, k, 0], head_y - points[b, k, 1]
        x, y = _half_angle(ux, uy, vx, vy)
        seen[_X, k + num_specials], seen[_Y, k + num_specials] = x / length, y / length


@reassociating_inline
def _half_angle(ux, uy, vx, vy):
    """Return the complex square root of `conj(v) u` whose real part is not negative."""
    dot, cross = _dot(ux, uy, vx, vy), _cross(vx, vy, ux, uy)
    size = np.sqrt((ux * ux + uy * uy) * (vx * vx + vy * vy))
    larger = np.sqrt((size + abs(dot)) * _HALF)
    smaller = cross / max(larger + larger, _TINY)
    if dot >= _ZERO:
        return larger, smaller
    return abs(smaller), np.copysign(larger, cross)


@reassociating_inline
def _measure(seen):
    """Write the lengths of the vectors, and their logarithms."""
    for t in range(seen.shape[1]):
        seen[_DIST, t] = _length(seen[_X, t], seen[_Y, t])
    for t in range(seen.shape[1]):
        seen[_LOG, t] = log32(seen[_DIST, t])


@reassociating_inline
def _frame(x, y, log_dist, is_last_edge, has_element, seen, features):
    """Write the features of all tokens relative to the edge with the vector (x, y).

    If the answer has no element, there is no edge. Then cosine and sine are 0 in the first round.
    In further rounds, differences of coordinates replace cosine and sine. `log_dist` is the
    logarithm of the edge's length, or 0 in the first round.
    """
    width, dist = seen.shape[1], _length(x, y)
    if has_element > _ZERO:
        for t in range(width):
            seen[_SCALE, t] = _ONE / (dist * seen[_DIST, t])
        for t in range(width):
            features[_COSINE, t] = _dot(x, y, seen[_X, t], seen[_Y, t]) * seen[_SCALE, t]
        for t in range(width):
            features[_SINE, t] = _cross(x, y, seen[_X, t], seen[_Y, t]) * seen[_SCALE, t]
    else:
        share = _ZERO if is_last_edge else _ONE
        for t in range(width):
            features[_COSINE, t] = (seen[_Y, t] - y) * share
        for t in range(width):
            features[_SINE, t] = (seen[_X, t] - x) * share
    for t in range(width):
        seen[_LINE_DIST, t] = features[_SINE, t] * seen[_DIST, t] * has_element
    for t in range(width):
        features[_LOG_DIST, t] = (seen[_LOG, t] - log_dist) * has_element
    _write_logs(features, _COSINE, features, _COSINE_LOGS)
    _write_logs(features, _SINE, features, _SINE_LOGS)
    _write_logs(seen, _LINE_DIST, features, _LINE_LOGS)


@reassociating_inline
def _write_logs(source, row, features, first):
    """Write three rows from one row x: `sign(x) log(1 + |x| s)` for s = 1e3, 1e5 and 1e7."""
    scale = np.float32(1e3)
    for f in range(first, first + 3):
        for t in range(source.shape[1]):
            x = source[row, t]
            features[f, t] = np.copysign(log32(_ONE + abs(x) * scale), x)
        scale *= np.float32(1e2)
