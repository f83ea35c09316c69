"""The compiled CPU kernel of additive scores, with the formula of `additive.py`.

Loops skip padded keys and queries. They convert bfloat16 numbers one by one as they read them, so
there is no float32 copy of the tensor.

The compiled loops at the end run over the instances `first` to `last - 1` of a batch. Their arrays:

- keys `(B, N, H)` and queries `(B, M, H)`, bfloat16 as uint16
- `v` `(H,)`, in the type in which sums are computed
- lengths `(B,)`
- `a` and `c`, the exponentials of keys and queries

The loops count the numbers whose exponentials are too large. If the count is not 0, we discard the
result and call `chunked_scores`, which uses tanh.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from ptrnet.kernels import needs_plain
from ptrnet.kernels.additive_formula import (
    Arguments,
    check_arguments,
    check_shapes,
    chunked_scores,
    gradients_by_formula,
    in_one_type,
)
from ptrnet.kernels.numerics import (
    as_array,
    divide,
    exp,
    load,
    reassociating_inline,
    reassociating_jit,
    store,
    widest_vectors,
)
from ptrnet.kernels.threads import run_slices
from ptrnet.masks import Lengths

# For fewer products v[h] * r than this, starting a second thread (50 microseconds) takes more time
# than the thread saves.
MIN_ENTRIES = 200_000

# We compute exp(2 key) exp(2 query) only if the magnitudes of keys and queries are below this.
# exp(2 * 43) * exp(2 * 43) is inf, and 1 / (1 + inf) = 0 is right. But exp(2 * 45) alone is inf,
# and inf * 0 is NaN. Clipping keys and queries would be wrong, because a key of 60 and a query of
# -50 must give tanh(10).
_BOUNDS = {torch.float32: np.float32(43), torch.float64: np.float64(350)}

# Clip products of exponentials at this number, because `divide` does not support infinity. For
# products above this number, 1 / (1 + A C) is 0 up to rounding, with and without clipping.
_LARGEST = 1e38


def compiled_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Lengths = None,
    query_lengths: Lengths = None,
) -> Tensor:
    """Compute `additive_scores` of tensors on the CPU."""
    arguments = check_arguments(keys, queries, v, key_lengths, query_lengths)
    return _Scores.apply(*_to_kernel_types(arguments))


class PreparedScores:
    """`additive_scores` of fixed keys for changing queries. It stores the keys' exponentials.

    Decoding needs scores of the same keys in every step. There are no gradients.

    Args:
        keys: `(B, N, H)`.
        v: `(H,)`.
        key_lengths: `(B,)` integers in 0..N. None: no padding.

    Raises:
        ShapeError: keys, `v` and lengths do not fit each other.
    """

    def __init__(self, keys: Tensor, v: Tensor, key_lengths: Lengths = None) -> None:
        arguments = check_arguments(keys, keys, v, key_lengths, None)
        self._keys, _, self._v, self._lengths, _ = _to_kernel_types(arguments)
        # Convert tensors to arrays only once: a conversion takes as long as scoring a few keys.
        exponentials = as_array(self._v.new_empty(self._keys.shape))
        self._arrays = exponentials, as_array(self._v), as_array(self._lengths)
        self._cuts: dict[int, list[int]] = {}  # for each number of queries, the cuts of the batch
        arrays = [as_array(self._keys), self._arrays[2], exponentials]
        self._is_large = _count_large(prepare_keys, self._cuts_for(1), self._v.dtype, arrays) > 0

    def __call__(self, queries: Tensor) -> Tensor:
        """Return scores `(B, M, N)` of queries `(B, M, H)`. Raise ShapeError for other shapes."""
        check_shapes(self._keys, queries, self._v)  # compiled code would read beyond the arrays
        if queries.dtype not in (torch.bfloat16, self._v.dtype):
            queries = queries.to(self._v.dtype)
        if not self._is_large:
            (batch, n, _), m = self._keys.shape, queries.shape[1]
            scores, cuts = self._v.new_zeros(batch, m, n), self._cuts_for(m)
            arrays = [*self._arrays, as_array(queries), as_array(scores)]
            if not _count_large(prepared_forward, cuts, self._v.dtype, arrays):
                return scores
        return chunked_scores(self._keys, queries, self._v, self._lengths)

    def _cuts_for(self, m: int) -> list[int]:
        if m not in self._cuts:
            self._cuts[m] = _equal_work_cuts(self._lengths * m, len(self._v))
        return self._cuts[m]


def _to_kernel_types(arguments: Arguments) -> Arguments:
    """Convert to one float type. Keep bfloat16 keys and queries if all are bfloat16 or float32."""
    types = {arguments.keys.dtype, arguments.queries.dtype, arguments.v.dtype}
    if types <= {torch.bfloat16, torch.float32}:
        return arguments._replace(v=arguments.v.float())
    return in_one_type(arguments)


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, *arguments: Tensor) -> Tensor:
        keys, queries, v, key_lengths, query_lengths = arguments
        scores = v.new_zeros(len(keys), queries.shape[1], keys.shape[1])
        arrays = [as_array(t) for t in (*arguments, scores)]
        cuts = _equal_work_cuts(key_lengths * query_lengths, len(v))
        large = _count_large(factorised_forward, cuts, v.dtype, arrays)
        if large:
            scores = chunked_scores(*arguments)
        ctx.is_large = large > 0  # type: ignore[attr-defined]
        ctx.save_for_backward(*arguments)
        return scores

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        if needs_plain(grad):
            return gradients_by_formula(Arguments(*ctx.saved_tensors), grad)  # type: ignore[attr-defined]
        keys, queries, v, *lengths = ctx.saved_tensors  # type: ignore[attr-defined]
        if ctx.is_large:  # type: ignore[attr-defined]
            return gradients_by_formula(Arguments(*ctx.saved_tensors), grad, chunked_scores)  # type: ignore[attr-defined]
        cuts = _equal_work_cuts(lengths[0] * lengths[1], len(v))
        grad_keys, grad_queries = (x.new_empty(x.shape) for x in (keys, queries))
        # Each slice adds to a separate row of `grad_v`. The rows are added in a fixed order, so
        # that every run gives the same sum. The rows are float64, because many numbers are added.
        grad_v = v.new_zeros(len(cuts) - 1, len(v), dtype=torch.float64)
        tensors = (keys, queries, v, *lengths, grad, grad_keys, grad_queries, grad_v)
        *arrays, rows = (as_array(t) for t in tensors)

        def run(k: int, first: int, last: int) -> None:
            factorised_backward(first, last, *arrays, rows[k])

        run_slices(run, cuts)
        return grad_keys, grad_queries, grad_v.sum(0).to(v.dtype), None, None


def _count_large(loop: Any, cuts: list[int], dtype: torch.dtype, arrays: list[Any]) -> int:
    """Run a compiled loop on slices. Return how many numbers were too large for the loop."""
    counts = [0] * (len(cuts) - 1)

    def run(k: int, first: int, last: int) -> None:
        counts[k] = loop(first, last, _BOUNDS[dtype], *arrays)

    run_slices(run, cuts)
    return sum(counts)


def _equal_work_cuts(work: Tensor, units: int) -> list[int]:
    """Return the cuts of a batch into slices of about equal work, one per thread.

    A small batch stays in one slice, because more threads would not save time (`MIN_ENTRIES`). The
    work `(B,)` is the number of (key, query) pairs in each instance.
    """
    threads = torch.get_num_threads()
    total = int(work.sum())
    if threads == 1 or total * units < MIN_ENTRIES:
        return [0, len(work)]
    shares = torch.arange(1, threads, device=work.device) * total // threads
    return [0, *torch.searchsorted(work.cumsum(0), shares).tolist(), len(work)]


@reassociating_inline
def write_exponentials(values, rows, bound, out):
    """Write `out = exp(2 values)` for the first `rows` rows. Return how many values are too large.

    A value is too large if its magnitude is not below `bound`. A NaN counts as too large.
    """
    widest_vectors()
    two = out.dtype.type(2)
    large = 0
    for j in range(rows):
        for h in range(values.shape[1]):
            x = load(values[j, h])
            large += not abs(x) < bound  # `abs(x) >= bound` would be False for NaN
            out[j, h] = exp(two * x)
    return large


@reassociating_inline
def write_scores(a, n, c, m, v, scores):
    """Write the scores `(M, N)` of the first n keys and m queries of an instance."""
    widest_vectors()
    units = v.shape[0]
    zero, one, two = v.dtype.type(0), v.dtype.type(1), v.dtype.type(2)
    largest = v.dtype.type(_LARGEST)
    total = zero
    for h in range(units):
        total += v[h]
    for i in range(m):
        for j in range(n):
            s = zero
            for h in range(units):
                s += divide(v[h], one + min(a[j, h] * c[i, h], largest))
            scores[i, j] = total - two * s


@reassociating_jit
def prepare_keys(first, last, bound, keys, key_lengths, a):
    """Write the exponentials `a` of the keys. Return how many numbers of the keys are too large."""
    widest_vectors()
    large = 0
    for b in range(first, last):
        large += write_exponentials(keys[b], key_lengths[b], bound, a[b])
    return large


@reassociating_jit
def prepared_forward(first, last, bound, a, v, key_lengths, queries, scores):
    """Write the scores of keys whose exponentials are `a`.

    Return how many numbers of the queries are too large. If this is not 0, the scores are wrong.
    """
    widest_vectors()
    c = np.empty(queries.shape[1:], v.dtype)
    large = 0
    for b in range(first, last):
        large += write_exponentials(queries[b], queries.shape[1], bound, c)
        write_scores(a[b], key_lengths[b], c, queries.shape[1], v, scores[b])
    return large


@reassociating_jit
def factorised_forward(first, last, bound, keys, queries, v, key_lengths, query_lengths, scores):
    """Write the scores. Return how many numbers of the keys and queries are too large."""
    widest_vectors()
    a, c = np.empty(keys.shape[1:], v.dtype), np.empty(queries.shape[1:], v.dtype)
    large = 0
    for b in range(first, last):
        large += write_exponentials(keys[b], key_lengths[b], bound, a)
        large += write_exponentials(queries[b], query_lengths[b], bound, c)
        write_scores(a, key_lengths[b], c, query_lengths[b], v, scores[b])
    return large


@reassociating_jit
def factorised_backward(
    first, last, keys, queries, v, key_lengths, query_lengths, grad, grad_keys, grad_queries, grad_v
):
    """Write the gradients of keys and queries, and add the gradient of `v` to `grad_v`."""
    widest_vectors()
    units = v.shape[0]
    one, two = v.dtype.type(1), v.dtype.type(2)
    largest = v.dtype.type(_LARGEST)
    a, c = np.empty(keys.shape[1:], v.dtype), np.empty(queries.shape[1:], v.dtype)
    grad_a, grad_c, sums = np.empty_like(a), np.empty_like(c), np.empty_like(v)
    for b in range(first, last):
        # The bound does not matter here, because the forward pass counted the large numbers.
        write_exponentials(keys[b], key_lengths[b], one, a)
        write_exponentials(queries[b], query_lengths[b], one, c)
        total = v.dtype.type(0)
        grad_a[:] = 0
        grad_c[:] = 0
        sums[:] = 0
        for j in range(key_lengths[b]):
            for i in range(query_lengths[b]):
                g = grad[b, i, j]
                total += g
                for h in range(units):
                    r = divide(one, one + min(a[j, h] * c[i, h], largest))
                    t = g * r
                    s = t - t * r
                    sums[h] += t
                    grad_a[j, h] += s
                    grad_c[i, h] += s
        for h in range(units):
            grad_v[h] += total - two * sums[h]
        _write_scaled(grad_a, v, grad_keys[b])
        _write_scaled(grad_c, v, grad_queries[b])


@reassociating_inline
def _write_scaled(sums, v, out):
    """Write `out = 4 v sums`, in the type of `out`."""
    widest_vectors()
    four = v.dtype.type(4)
    for j in range(out.shape[0]):
        for h in range(out.shape[1]):
            out[j, h] = store(four * v[h] * sums[j, h], out[j, h])
