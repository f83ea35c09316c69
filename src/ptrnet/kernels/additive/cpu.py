"""The compiled CPU kernel: factorised as in `factorised`, fused, and ragged.

Nothing of size (B, M, N, H) exists, forward or backward: `r = 1 / (1 + A C)` is recomputed
where the gradient needs it. Padded keys and queries are not visited. bfloat16 is read as it is.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from ptrnet.kernels.additive.arguments import Arguments, check_arguments, check_shapes, precise
from ptrnet.kernels.additive.factorised import LARGEST
from ptrnet.kernels.numerics import array, exp, jit, load, store
from ptrnet.kernels.threads import over_slices

# Entries v[h] * r below which a second thread costs more than it saves (about 50 microseconds).
SERIAL = 200_000


def additive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """As `ptrnet.kernels.additive_scores`; tensors on the CPU."""
    return _Scores.apply(*_readable(check_arguments(keys, queries, v, key_lengths, query_lengths)))


def prepared_scores(keys: Tensor, v: Tensor, key_lengths: Tensor | None = None) -> "Prepared":
    """As `ptrnet.kernels.prepared_scores`; tensors on the CPU."""
    return Prepared(_readable(check_arguments(keys, keys, v, key_lengths, None)))


class Prepared:
    """The keys' exponentials, kept; where they are too large, the keys."""

    def __init__(self, arguments: Arguments) -> None:
        self._keys, _, self._v, self._lengths, _ = arguments
        self._kept = torch.empty(self._keys.shape, dtype=self._v.dtype)
        self._bound = array(self._v).dtype.type(LARGEST[self._v.dtype])
        self._slices: dict[int, list[int]] = {}  # by the queries that come at a time
        arrays = [array(t) for t in (self._keys, self._lengths, self._kept)]
        self._large = self._counted(_prepare, 1, arrays)

    def __call__(self, queries: Tensor) -> Tensor:
        """Scores `(B, M, N)` of queries `(B, M, H)`."""
        check_shapes(self._keys, queries, self._v)
        if queries.dtype not in (torch.bfloat16, self._v.dtype):
            queries = queries.to(self._v.dtype)
        steps = queries.shape[1]
        scores = torch.zeros(len(queries), steps, self._keys.shape[1], dtype=self._v.dtype)
        arrays = [array(t) for t in (self._kept, queries, self._v, self._lengths, scores)]
        if self._large or self._counted(_forward_prepared, steps, arrays):
            return additive_scores(self._keys, queries, self._v, self._lengths)
        return scores

    def _counted(self, kernel: Any, steps: int, arrays: list[Any]) -> int:
        """What a kernel counts, run on slices of about equal work."""
        if steps not in self._slices:
            self._slices[steps] = _cuts(self._lengths * steps, len(self._v))
        cuts = self._slices[steps]
        found = [0] * (len(cuts) - 1)

        def run(k: int, first: int, last: int) -> None:
            found[k] = kernel(first, last, self._bound, *arrays)

        over_slices(run, cuts)
        return sum(found)


def _readable(arguments: Arguments) -> Arguments:
    """In types that the kernel reads: one float type, or bfloat16 and float32 with float32 `v`."""
    low = {torch.bfloat16, torch.float32}
    if {arguments.keys.dtype, arguments.queries.dtype, arguments.v.dtype} <= low:
        return arguments._replace(v=arguments.v.float())
    return precise(arguments)


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        keys: Tensor,
        queries: Tensor,
        v: Tensor,
        key_lengths: Tensor,
        query_lengths: Tensor,
    ) -> Tensor:
        scores = torch.zeros(len(keys), queries.shape[1], keys.shape[1], dtype=v.dtype)
        arrays = [array(t) for t in (keys, queries, v, key_lengths, query_lengths, scores)]
        bound = arrays[2].dtype.type(LARGEST[v.dtype])
        cuts = _cuts(key_lengths * query_lengths, len(v))
        large = [0] * (len(cuts) - 1)

        def run(k: int, first: int, last: int) -> None:
            large[k] = _forward(first, last, bound, *arrays)

        over_slices(run, cuts)
        ctx.factorised = not any(large)  # type: ignore[attr-defined]
        if any(large):
            over_slices(lambda _, first, last: _forward_direct(first, last, *arrays), cuts)
        ctx.save_for_backward(keys, queries, v, key_lengths, query_lengths)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        keys, queries, v, *lengths = ctx.saved_tensors  # type: ignore[attr-defined]
        factorised = ctx.factorised  # type: ignore[attr-defined]
        backward: Any = _backward if factorised else _backward_direct
        cuts = _cuts(lengths[0] * lengths[1], len(v))
        grad_keys, grad_queries = (torch.empty(x.shape, dtype=x.dtype) for x in (keys, queries))
        # A row for each slice, added in one order: the same sum on every run. In float64, as
        # every entry of the batch goes into it.
        grad_v = torch.zeros(len(cuts) - 1, len(v), dtype=torch.float64)
        given = (keys, queries, v, *lengths, grad, grad_keys, grad_queries, grad_v)
        *arrays, rows = (array(t) for t in given)
        over_slices(lambda k, first, last: backward(first, last, *arrays, rows[k]), cuts)
        return grad_keys, grad_queries, grad_v.sum(0).to(v.dtype), None, None


def _cuts(work: Tensor, units: int) -> list[int]:
    """Where to cut the batch into slices of about equal work."""
    slices = torch.get_num_threads()
    total = int(work.sum())
    if slices == 1 or total * units < SERIAL:
        return [0, len(work)]
    shares = torch.arange(1, slices) * total // slices
    return [0, *torch.searchsorted(work.cumsum(0), shares).tolist(), len(work)]


@jit
def _exponentials(values, rows, bound, out):
    """`out = exp(2 values)`, the first `rows`; how many are not below `bound` (NaN is not)."""
    two = out.dtype.type(2)
    large = 0
    for j in range(rows):
        for h in range(values.shape[1]):
            x = load(values[j, h])
            large += not abs(x) < bound
            out[j, h] = exp(two * x)
    return large


@jit
def _score(a, n, c, m, v, scores):
    """The scores `(M, N)` of the first n keys and m queries of an instance."""
    units = v.shape[0]
    zero, one, two = v.dtype.type(0), v.dtype.type(1), v.dtype.type(2)
    total = zero
    for h in range(units):
        total += v[h]
    for i in range(m):
        for j in range(n):
            s = zero
            for h in range(units):
                s += v[h] / (one + a[j, h] * c[i, h])
            scores[i, j] = total - two * s


@jit
def _prepare(first, last, bound, keys, key_lengths, a):
    large = 0
    for b in range(first, last):
        large += _exponentials(keys[b], key_lengths[b], bound, a[b])
    return large


@jit
def _forward_prepared(first, last, bound, a, queries, v, key_lengths, scores):
    """As `_forward`, of keys whose exponentials are `a`."""
    c = np.empty(queries.shape[1:], v.dtype)
    large = 0
    for b in range(first, last):
        large += _exponentials(queries[b], queries.shape[1], bound, c)
        _score(a[b], key_lengths[b], c, queries.shape[1], v, scores[b])
    return large


@jit
def _forward(first, last, bound, keys, queries, v, key_lengths, query_lengths, scores):
    """Writes the scores; how many keys and queries were too large for them to be right."""
    a, c = np.empty(keys.shape[1:], v.dtype), np.empty(queries.shape[1:], v.dtype)
    large = 0
    for b in range(first, last):
        large += _exponentials(keys[b], key_lengths[b], bound, a)
        large += _exponentials(queries[b], query_lengths[b], bound, c)
        _score(a, key_lengths[b], c, query_lengths[b], v, scores[b])
    return large


@jit
def _backward(
    first, last, keys, queries, v, key_lengths, query_lengths, grad, grad_keys, grad_queries, grad_v
):
    units = v.shape[0]
    one, two, four = v.dtype.type(1), v.dtype.type(2), v.dtype.type(4)
    a, c = np.empty(keys.shape[1:], v.dtype), np.empty(queries.shape[1:], v.dtype)
    grad_a, grad_c, sums = np.empty_like(a), np.empty_like(c), np.empty_like(v)
    for b in range(first, last):
        _exponentials(keys[b], key_lengths[b], one, a)
        _exponentials(queries[b], query_lengths[b], one, c)
        total = v.dtype.type(0)
        grad_a[:] = 0
        grad_c[:] = 0
        sums[:] = 0
        for j in range(key_lengths[b]):
            for i in range(query_lengths[b]):
                g = grad[b, i, j]
                total += g
                for h in range(units):
                    r = one / (one + a[j, h] * c[i, h])
                    t = g * r
                    s = t - t * r
                    sums[h] += t
                    grad_a[j, h] += s
                    grad_c[i, h] += s
        for h in range(units):
            grad_v[h] += total - two * sums[h]
        _scaled(grad_a, four, v, grad_keys[b])
        _scaled(grad_c, four, v, grad_queries[b])


@jit
def _scaled(sums, factor, v, out):
    """`out = factor * v * sums`, in the type of `out`."""
    for j in range(out.shape[0]):
        for h in range(out.shape[1]):
            out[j, h] = store(factor * v[h] * sums[j, h], out[j, h])


@jit
def _forward_direct(first, last, keys, queries, v, key_lengths, query_lengths, scores):
    for b in range(first, last):
        for i in range(query_lengths[b]):
            for j in range(key_lengths[b]):
                s = v.dtype.type(0)
                for h in range(v.shape[0]):
                    s += v[h] * np.tanh(load(keys[b, j, h]) + load(queries[b, i, h]))
                scores[b, i, j] = s


@jit
def _backward_direct(
    first, last, keys, queries, v, key_lengths, query_lengths, grad, grad_keys, grad_queries, grad_v
):
    one = v.dtype.type(1)
    grad_a, grad_c = np.empty(keys.shape[1:], v.dtype), np.empty(queries.shape[1:], v.dtype)
    for b in range(first, last):
        grad_a[:] = 0
        grad_c[:] = 0
        for j in range(key_lengths[b]):
            for i in range(query_lengths[b]):
                g = grad[b, i, j]
                for h in range(v.shape[0]):
                    t = np.tanh(load(keys[b, j, h]) + load(queries[b, i, h]))
                    s = g * (one - t * t)
                    grad_v[h] += g * t
                    grad_a[j, h] += s
                    grad_c[i, h] += s
        _scaled(grad_a, one, v, grad_keys[b])
        _scaled(grad_c, one, v, grad_queries[b])
