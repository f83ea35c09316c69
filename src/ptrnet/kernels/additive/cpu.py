"""The compiled CPU kernel: factorised as in `factorised`, fused, and ragged.

Nothing of size (B, M, N, H) exists, forward or backward: `r = 1 / (1 + A C)` is recomputed
where the gradient needs it. Padded keys and queries are not visited.
"""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from ptrnet.kernels.additive.arguments import check
from ptrnet.kernels.additive.factorised import fits
from ptrnet.kernels.threads import over_slices

# Entries v[h] * r below which a second thread costs more than it saves (about 50 microseconds).
SERIAL = 200_000

# Reassociation lets the sums vectorise. "ninf" and "nnan" stay out: A * C = inf is legal here.
_jit = numba.njit(
    nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"}
)


def additive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """As `ptrnet.kernels.additive_scores`; tensors on the CPU."""
    return _Scores.apply(*check(keys, queries, v, key_lengths, query_lengths))


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
        keys, queries = keys.contiguous(), queries.contiguous()
        cuts = _cuts(key_lengths * query_lengths, len(v))
        ctx.factorised = fits(keys, queries)  # type: ignore[attr-defined]
        if ctx.factorised:  # type: ignore[attr-defined]
            keys, queries = keys.mul(2).exp_(), queries.mul(2).exp_()
            forward: Any = _forward
        else:
            forward = _forward_direct
        ctx.save_for_backward(keys, queries, v, key_lengths, query_lengths)
        scores = keys.new_zeros(len(keys), queries.shape[1], keys.shape[1])
        arrays = _arrays(keys, queries, v, key_lengths, query_lengths, scores)
        over_slices(lambda _, first, last: forward(first, last, *arrays), cuts)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        keys, queries, v, key_lengths, query_lengths = ctx.saved_tensors  # type: ignore[attr-defined]
        backward: Any = _backward if ctx.factorised else _backward_direct  # type: ignore[attr-defined]
        grad_keys, grad_queries = torch.zeros_like(keys), torch.zeros_like(queries)
        # A row for each slice, added in one order: the same sum on every run. In float64, as
        # every entry of the batch goes into it.
        cuts = _cuts(key_lengths * query_lengths, len(v))
        grad_v = v.new_zeros(len(cuts) - 1, len(v), dtype=torch.float64)
        given = (keys, queries, v, key_lengths, query_lengths, grad)
        *arrays, rows = _arrays(*given, grad_keys, grad_queries, grad_v)
        over_slices(lambda k, first, last: backward(first, last, *arrays, rows[k]), cuts)
        return grad_keys, grad_queries, grad_v.sum(0).to(v.dtype), None, None


def _arrays(*tensors: Tensor) -> list[np.ndarray]:
    return [t.detach().contiguous().numpy() for t in tensors]


def _cuts(work: Tensor, units: int) -> list[int]:
    """Where to cut the batch into slices of about equal work."""
    slices = torch.get_num_threads()
    total = int(work.sum())
    if slices == 1 or total * units < SERIAL:
        return [0, len(work)]
    shares = torch.arange(1, slices) * total // slices
    return [0, *torch.searchsorted(work.cumsum(0), shares).tolist(), len(work)]


@_jit
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


@_jit
def _backward(
    first,
    last,
    a,
    c,
    v,
    key_lengths,
    query_lengths,
    grad,
    grad_a,
    grad_c,
    grad_v,
):
    units = v.shape[0]
    one, two, four = v.dtype.type(1), v.dtype.type(2), v.dtype.type(4)
    sums = np.empty_like(v)
    for b in range(first, last):
        total = v.dtype.type(0)
        sums[:] = 0
        for j in range(key_lengths[b]):
            for i in range(query_lengths[b]):
                g = grad[b, i, j]
                total += g
                for h in range(units):
                    r = one / (one + a[b, j, h] * c[b, i, h])
                    t = g * r
                    s = t - t * r
                    sums[h] += t
                    grad_a[b, j, h] += s
                    grad_c[b, i, h] += s
        for j in range(key_lengths[b]):
            for h in range(units):
                grad_a[b, j, h] *= four * v[h]
        for i in range(query_lengths[b]):
            for h in range(units):
                grad_c[b, i, h] *= four * v[h]
        for h in range(units):
            grad_v[h] += total - two * sums[h]


@_jit
def _forward_direct(
    first,
    last,
    keys,
    queries,
    v,
    key_lengths,
    query_lengths,
    scores,
):
    for b in range(first, last):
        for i in range(query_lengths[b]):
            for j in range(key_lengths[b]):
                s = v.dtype.type(0)
                for h in range(v.shape[0]):
                    s += v[h] * np.tanh(keys[b, j, h] + queries[b, i, h])
                scores[b, i, j] = s


@_jit
def _backward_direct(
    first,
    last,
    keys,
    queries,
    v,
    key_lengths,
    query_lengths,
    grad,
    grad_k,
    grad_q,
    grad_v,
):
    one = v.dtype.type(1)
    for b in range(first, last):
        for j in range(key_lengths[b]):
            for i in range(query_lengths[b]):
                g = grad[b, i, j]
                for h in range(v.shape[0]):
                    t = np.tanh(keys[b, j, h] + queries[b, i, h])
                    s = g * v[h] * (one - t * t)
                    grad_v[h] += g * t
                    grad_k[b, j, h] += s
                    grad_q[b, i, h] += s
