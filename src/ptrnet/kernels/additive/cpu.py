"""The compiled CPU kernel: factorised as in `factorised`, fused, and ragged.

Nothing of size (B, M, N, H) exists, forward or backward: `r = 1 / (1 + A C)` is recomputed
where the gradient needs it. Padded keys and queries are not visited. bfloat16 is read as it is.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from ptrnet.kernels.additive.arguments import Arguments, check, precise
from ptrnet.kernels.additive.factorised import LARGEST
from ptrnet.kernels.numerics import array, exp, jit, load
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
    return _Scores.apply(*_readable(check(keys, queries, v, key_lengths, query_lengths)))


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
        a, c = (torch.empty(x.shape, dtype=v.dtype) for x in (keys, queries))
        scores = torch.zeros(len(keys), queries.shape[1], keys.shape[1], dtype=v.dtype)
        lengths = array(key_lengths), array(query_lengths)
        given, made = (array(keys), array(queries)), (array(a), array(c))
        cuts = _cuts(key_lengths * query_lengths, len(v))
        large = [0] * (len(cuts) - 1)
        bound = array(v).dtype.type(LARGEST[v.dtype])

        def run(k: int, first: int, last: int) -> None:
            for x, n, out in zip(given, lengths, made, strict=True):
                large[k] += _exponentials(first, last, x, n, bound, out)
            if not large[k]:
                _forward(first, last, *made, array(v), *lengths, array(scores))

        def run_directly(_: int, first: int, last: int) -> None:
            _forward_direct(first, last, *made, array(v), *lengths, array(scores))

        over_slices(run, cuts)
        if any(large):
            a.copy_(keys)
            c.copy_(queries)
            over_slices(run_directly, cuts)
        ctx.factorised = not any(large)  # type: ignore[attr-defined]
        # The exponentials, or the projections themselves where those would overflow.
        ctx.save_for_backward(a, c, v, key_lengths, query_lengths)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        a, c, v, *lengths = ctx.saved_tensors  # type: ignore[attr-defined]
        factorised = ctx.factorised  # type: ignore[attr-defined]
        backward: Any = _backward if factorised else _backward_direct
        cuts = _cuts(lengths[0] * lengths[1], len(v))
        grad_keys, grad_queries = torch.empty_like(a), torch.empty_like(c)
        # A row for each slice, added in one order: the same sum on every run. In float64, as
        # every entry of the batch goes into it.
        grad_v = v.new_zeros(len(cuts) - 1, len(v), dtype=torch.float64)
        *arrays, rows = map(array, (a, c, v, *lengths, grad, grad_keys, grad_queries, grad_v))
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
def _exponentials(first, last, values, lengths, bound, out):
    """`out = exp(2 values)`; how many of the values are not below `bound` (NaN is not)."""
    two = out.dtype.type(2)
    large = 0
    for b in range(first, last):
        for j in range(lengths[b]):
            for h in range(values.shape[2]):
                x = load(values[b, j, h])
                large += not abs(x) < bound
                out[b, j, h] = exp(two * x)
    return large


@jit
def _forward(first, last, a, c, v, key_lengths, query_lengths, scores):
    units = v.shape[0]
    zero, one, two = v.dtype.type(0), v.dtype.type(1), v.dtype.type(2)
    total = zero
    for h in range(units):
        total += v[h]
    for b in range(first, last):
        for i in range(query_lengths[b]):
            for j in range(key_lengths[b]):
                s = zero
                for h in range(units):
                    s += v[h] / (one + a[b, j, h] * c[b, i, h])
                scores[b, i, j] = total - two * s


@jit
def _backward(
    first, last, a, c, v, key_lengths, query_lengths, grad, grad_keys, grad_queries, grad_v
):
    units = v.shape[0]
    one, two, four = v.dtype.type(1), v.dtype.type(2), v.dtype.type(4)
    sums = np.empty_like(v)
    for b in range(first, last):
        total = v.dtype.type(0)
        sums[:] = 0
        grad_keys[b] = 0
        grad_queries[b] = 0
        for j in range(key_lengths[b]):
            for i in range(query_lengths[b]):
                g = grad[b, i, j]
                total += g
                for h in range(units):
                    r = one / (one + a[b, j, h] * c[b, i, h])
                    t = g * r
                    s = t - t * r
                    sums[h] += t
                    grad_keys[b, j, h] += s
                    grad_queries[b, i, h] += s
        for j in range(key_lengths[b]):
            for h in range(units):
                grad_keys[b, j, h] *= four * v[h]
        for i in range(query_lengths[b]):
            for h in range(units):
                grad_queries[b, i, h] *= four * v[h]
        for h in range(units):
            grad_v[h] += total - two * sums[h]


@jit
def _forward_direct(first, last, keys, queries, v, key_lengths, query_lengths, scores):
    for b in range(first, last):
        for i in range(query_lengths[b]):
            for j in range(key_lengths[b]):
                s = v.dtype.type(0)
                for h in range(v.shape[0]):
                    s += v[h] * np.tanh(keys[b, j, h] + queries[b, i, h])
                scores[b, i, j] = s


@jit
def _backward_direct(
    first, last, keys, queries, v, key_lengths, query_lengths, grad, grad_keys, grad_queries, grad_v
):
    one = v.dtype.type(1)
    for b in range(first, last):
        grad_keys[b] = 0
        grad_queries[b] = 0
        for j in range(key_lengths[b]):
            for i in range(query_lengths[b]):
                g = grad[b, i, j]
                for h in range(v.shape[0]):
                    t = np.tanh(keys[b, j, h] + queries[b, i, h])
                    s = g * v[h] * (one - t * t)
                    grad_v[h] += g * t
                    grad_keys[b, j, h] += s
                    grad_queries[b, i, h] += s
