"""The Triton kernel for GPUs: the formula itself, fused and ragged.

Nothing of size (B, M, N, H) exists, forward or backward: the sigmoid that gives both

    tanh(x) = 2 s - 1    and    d tanh = 4 s (1 - s),    s = 1 / (1 + exp(-2x)),

is recomputed where the gradient needs it. Unlike the products of `factorised` it is right for
every magnitude: exp(-2x) = inf gives s = 0. Half types are read and written as they are, all sums
are of `v`'s type, and no two programs add to one number, so a run gives the same bits as the last.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from ptrnet.kernels.additive.arguments import Arguments, check, precise

# What one program of 128 threads holds: of the scores (queries, keys, units at a time), first for
# a single query, as decoding has it; of the gradient of either input (rows, units).
ONE_QUERY, QUERIES = (1, 16, 128), (16, 16, 16)
ROWS, UNITS = 16, 64

# Sizes that differ from batch to batch: one compiled kernel serves for all of them.
BY_BATCH = ["most", "most_others", "most_keys", "most_queries", "stride", "stride_others"]


def additive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """As `ptrnet.kernels.additive_scores`; tensors on a GPU, lengths beyond the padding clipped."""
    return _Scores.apply(*_readable(check(keys, queries, v, key_lengths, query_lengths)))


def _readable(arguments: Arguments) -> Arguments:
    """With `v` in the type of the sums; keys and queries in float64 with it, else as they are."""
    if torch.float64 in {t.dtype for t in (arguments.keys, arguments.queries, arguments.v)}:
        return precise(arguments)
    return arguments._replace(v=arguments.v.float())


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
        keys, queries, v = (t.contiguous() for t in (keys, queries, v))
        (batch, n, units), m = keys.shape, queries.shape[1]
        scores = torch.zeros(batch, m, n, dtype=v.dtype, device=v.device)
        block = ONE_QUERY if m == 1 else QUERIES
        grid = (batch, triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))
        given = (keys, queries, v, key_lengths, query_lengths, scores, m, n, units)
        _launch(_forward, grid, *given, *block)
        ctx.save_for_backward(keys, queries, v, key_lengths, query_lengths)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        keys, queries, v, key_lengths, query_lengths = ctx.saved_tensors  # type: ignore[attr-defined]
        (batch, n, units), m = keys.shape, queries.shape[1]
        grad = grad.contiguous()
        grad_keys, grad_queries = torch.zeros_like(keys), torch.zeros_like(queries)
        by_keys, by_queries, by_units = (
            triton.cdiv(size, block) for size, block in ((n, ROWS), (m, ROWS), (units, UNITS))
        )
        # A row for each block of keys, added in one order, and in float64: they are many.
        grad_v = torch.zeros(batch, by_keys, units, dtype=v.dtype, device=v.device)
        lengths = (key_lengths, query_lengths)
        given = (keys, queries, v, *lengths, grad, grad_keys, grad_v, n, m, units, 1, n)
        _launch(_backward, (batch, by_keys, by_units), *given, ROWS, UNITS, True)
        given = (queries, keys, v, *lengths[::-1], grad, grad_queries, grad_v, m, n, units, n, 1)
        _launch(_backward, (batch, by_queries, by_units), *given, ROWS, UNITS, False)
        total = grad_v.sum((0, 1), dtype=torch.float64).to(v.dtype)
        return grad_keys, grad_queries, total, None, None


def _launch(kernel: Any, grid: tuple[int, int, int], first: Tensor, *others: object) -> None:
    """Runs the kernel on the device of its first tensor, where there is anything to do."""
    if all(grid):
        with torch.cuda.device_of(first):
            kernel[grid](first, *others)


@triton.jit(do_not_specialize=BY_BATCH)
def _forward(
    keys,
    queries,
    v,
    key_lengths,
    query_lengths,
    scores,
    most_queries,
    most_keys,
    units,
    block_queries: tl.constexpr,
    block_keys: tl.constexpr,
    block_units: tl.constexpr,
):
    """A block of queries with a block of keys; (units, queries, keys) at a time.

    Threads lie along the last axes first, so each adds up its own scores.
    """
    b = tl.program_id(0).to(tl.int64)
    first_i, first_j = tl.program_id(1) * block_queries, tl.program_id(2) * block_keys
    m = tl.minimum(tl.load(query_lengths + b), most_queries)
    n = tl.minimum(tl.load(key_lengths + b), most_keys)
    if (first_i >= m) | (first_j >= n):
        return
    i, j = first_i + tl.arange(0, block_queries), first_j + tl.arange(0, block_keys)
    row_i, row_j = b * most_queries + i, b * most_keys + j
    sums = tl.zeros((block_queries, block_keys), scores.dtype.element_ty)
    for first in range(0, units, block_units):
        h = first + tl.arange(0, block_units)
        real = h < units
        at_i, real_i = row_i[None, :] * units + h[:, None], real[:, None] & (i < m)[None, :]
        at_j, real_j = row_j[None, :] * units + h[:, None], real[:, None] & (j < n)[None, :]
        c = tl.load(queries + at_i, real_i, 0).to(sums.dtype)
        a = tl.load(keys + at_j, real_j, 0).to(sums.dtype)
        t = 2 * tl.sigmoid(2 * (a[:, None, :] + c[:, :, None])) - 1
        sums += tl.sum(tl.load(v + h, real, 0)[:, None, None] * t, 0)
    at = row_i[:, None] * most_keys + j[None, :]
    tl.store(scores + at, sums, (i < m)[:, None] & (j < n)[None, :])


@triton.jit(do_not_specialize=BY_BATCH)
def _backward(
    rows,
    others,
    v,
    lengths,
    other_lengths,
    grad,
    grad_rows,
    grad_v,
    most,
    most_others,
    units,
    stride,
    stride_others,
    block_rows: tl.constexpr,
    block_units: tl.constexpr,
    with_v: tl.constexpr,
):
    """The gradient of a block of rows, keys or queries, from all of the others, one by one.

    `grad` has a stride for rows and one for others. `with_v`: this block's share of `v`'s, too.
    """
    b = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * block_rows
    n = tl.minimum(tl.load(lengths + b), most)
    if first >= n:
        return
    j = first + tl.arange(0, block_rows)
    h = tl.program_id(2) * block_units + tl.arange(0, block_units)
    real = (j < n)[:, None] & (h < units)[None, :]
    at = (b * most + j)[:, None] * units + h[None, :]
    sums = tl.zeros((block_rows, block_units), v.dtype.element_ty)
    sums_v = tl.zeros((block_rows, block_units), v.dtype.element_ty)
    a = tl.load(rows + at, real, 0).to(sums.dtype)
    at_c = others + b * most_others * units + h
    at_g = grad + b * most * most_others + j.to(tl.int64) * stride
    for _ in range(tl.minimum(tl.load(other_lengths + b), most_others)):
        c = tl.load(at_c, h < units, 0).to(sums.dtype)
        g = tl.load(at_g, j < n, 0)[:, None]
        s = tl.sigmoid(2 * (a + c[None, :]))
        sums += g * (s - s * s)
        if with_v:
            sums_v += g * (2 * s - 1)
        at_c += units
        at_g += stride_others
    w = tl.load(v + h, h < units, 0)
    tl.store(grad_rows + at, 4 * w[None, :] * sums, real)
    if with_v:
        block = b * tl.num_programs(1) + tl.program_id(1)
        tl.store(grad_v + block * units + h, tl.sum(sums_v, 0), h < units)
