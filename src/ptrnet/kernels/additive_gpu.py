"""The Triton kernel of additive scores, for GPUs.

The kernel skips padding. If an exponential of a block could overflow, the kernel computes
`r = 1 / (1 + exp(2 (keys + queries)))` instead of `1 / (1 + A C)`. This formula is right for every
magnitude. The kernel converts half types number by number, so there is no float32 copy of the keys
or the queries. All sums have `v`'s type. Each program (a block of threads in Triton) adds to
separate numbers, so every run gives the same bits.

In the kernels, i is the index of a query, j of a key and h of a unit. `max_queries` and `max_keys`
are M and N, padding included. m and n are the numbers of queries and keys of an instance, without
padding.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx

from ptrnet.kernels import needs_plain
from ptrnet.kernels.additive_formula import (
    Arguments,
    check_arguments,
    gradients_by_formula,
    in_one_type,
)
from ptrnet.masks import Lengths

# The sizes of the block that one program of 128 threads computes at a time. A forward block has
# queries, keys and units. If there is a single query, as in greedy decoding, we use
# FORWARD_BLOCK_ONE_QUERY. A backward block has keys and units.
FORWARD_BLOCK_ONE_QUERY, FORWARD_BLOCK = (1, 16, 128), (16, 16, 16)
BACKWARD_BLOCK = (16, 128)

# If the magnitudes of keys and queries are below this, exp(2 key) exp(2 query) is finite, and as
# exact as exp(2 (key + query)).
MAX_MAGNITUDE = tl.constexpr(20.0)
COMPARED = tl.constexpr(64)  # units that are compared with MAX_MAGNITUDE at a time

# Sizes that differ between batches or models. Triton must not specialise on these sizes, so that
# one compiled kernel serves all batches and models.
BATCH_SIZES = ["max_keys", "max_queries", "units"]


def triton_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Lengths = None,
    query_lengths: Lengths = None,
) -> Tensor:
    """Compute `additive_scores` of tensors on a GPU. Lengths above N and M are clipped."""
    arguments = check_arguments(keys, queries, v, key_lengths, query_lengths)
    is_double = torch.float64 in {t.dtype for t in (keys, queries, v)}
    return _Scores.apply(*in_one_type(arguments) if is_double else arguments._replace(v=v.float()))


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
        inputs = (keys, queries, v, key_lengths, query_lengths)
        keys, queries, v = (t.contiguous() for t in (keys, queries, v))
        (batch, n, units), m = keys.shape, queries.shape[1]
        scores = torch.empty(batch, m, n, dtype=v.dtype, device=v.device)
        block = FORWARD_BLOCK_ONE_QUERY if m == 1 else FORWARD_BLOCK
        grid = (batch, triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))
        tensors = (keys, queries, v, key_lengths, query_lengths, scores)
        _launch(_forward, grid, *tensors, n, m, units, *block)
        # Save the inputs, not their contiguous copies, so that gradients can be differentiated
        # again.
        ctx.save_for_backward(*inputs)
        return scores

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        if needs_plain(grad):
            return gradients_by_formula(Arguments(*ctx.saved_tensors), grad)  # type: ignore[attr-defined]
        *tensors, key_lengths, query_lengths = ctx.saved_tensors  # type: ignore[attr-defined]
        keys, queries, v = (t.contiguous() for t in tensors)
        (batch, n, units), m = keys.shape, queries.shape[1]
        grad_keys = torch.zeros_like(keys)
        # Blocks of keys add to `grad_queries` one after another. We round these sums to the
        # queries' type only at the end.
        grad_queries = torch.zeros_like(queries, dtype=v.dtype)
        # Each instance writes a separate row, so that the rows can be added in a fixed order.
        grad_v = torch.zeros(batch, units, dtype=v.dtype, device=v.device)
        inputs = (keys, queries, v, key_lengths, query_lengths, grad.contiguous())
        outputs = (grad_keys, grad_queries, grad_v)
        grid = (batch, triton.cdiv(units, BACKWARD_BLOCK[1]), 1)
        if n and m:
            use_int64 = max(n * m, max(n, m) * units) >= 2**31
            sizes = (n, m, units, *BACKWARD_BLOCK, use_int64)
            _launch(_backward, grid, *inputs, *outputs, *sizes)
        return grad_keys, grad_queries.to(queries.dtype), grad_v.sum(0), None, None


def _launch(kernel: Any, grid: tuple[int, int, int], tensor: Tensor, *others: object) -> None:
    """Run the kernel on the first tensor's device. If the grid is empty, do nothing."""
    if all(grid):
        with torch.cuda.device_of(tensor):
            kernel[grid](tensor, *others)


@triton.jit
def _is_small(rows, count, units, first, last, block_rows: tl.constexpr, block_units: tl.constexpr):
    """Whether units `first` to `last - 1` of `count` rows are below MAX_MAGNITUDE in magnitude."""
    largest = tl.zeros((block_rows, block_units), tl.float32)
    for first_row in range(0, count, block_rows):
        i = first_row + tl.arange(0, block_rows)
        for first_unit in range(first, last, block_units):
            h = first_unit + tl.arange(0, block_units)
            mask = (i < count)[:, None] & (h < last)[None, :]
            x = tl.load(rows + i[:, None] * units + h[None, :], mask, 0)
            largest = tl.maximum(largest, tl.abs(x).to(tl.float32))
    return tl.max(largest) < MAX_MAGNITUDE


@triton.jit
def _term(x, small):
    """Return what `_ratio` needs of a key or query x: `exp(2 x)` if `small`, else `2 x`."""
    return tl.exp(2 * x) if small else 2 * x


@triton.jit
def _ratio(x, y, small):
    """Return `1 / (1 + exp(2 (key + query)))`. x and y are `_term` of the key and the query."""
    e = x * y if small else tl.exp(x + y)
    root = tl.rsqrt(1 + e)  # one instruction, while a division needs ten
    return root * root


@triton.jit(do_not_specialize=BATCH_SIZES)
def _forward(
    keys,
    queries,
    v,
    key_lengths,
    query_lengths,
    scores,
    max_keys,
    max_queries,
    units,
    block_queries: tl.constexpr,
    block_keys: tl.constexpr,
    block_units: tl.constexpr,
):
    """Write the scores of a block of queries and a block of keys, one block of units at a time.

    Arrays in the loop are (units, queries, keys). Triton lays threads along the last axes first, so
    each thread adds up the units of its own scores.
    """
    b = tl.program_id(0).to(tl.int64)
    first_i, first_j = tl.program_id(1) * block_queries, tl.program_id(2) * block_keys
    m = tl.minimum(tl.load(query_lengths + b), max_queries).to(tl.int32)
    n = tl.minimum(tl.load(key_lengths + b), max_keys).to(tl.int32)
    i, j = first_i + tl.arange(0, block_queries), first_j + tl.arange(0, block_keys)
    row_i, row_j = b * max_queries + i, b * max_keys + j
    sums = tl.zeros((block_queries, block_keys), scores.dtype.element_ty)
    if (first_i < m) & (first_j < n):
        rows_i = tl.minimum(m - first_i, block_queries)
        rows_j = tl.minimum(n - first_j, block_keys)
        row_i0, row_j0 = b * max_queries + first_i, b * max_keys + first_j
        small = _is_small(
            queries + row_i0 * units, rows_i, units, 0, units, block_queries, COMPARED
        )
        small &= _is_small(keys + row_j0 * units, rows_j, units, 0, units, block_keys, COMPARED)
        for first in range(0, units, block_units):
            h = first + tl.arange(0, block_units)
            h_mask = (h < units)[:, None]
            offsets_i = row_i[None, :] * units + h[:, None]
            offsets_j = row_j[None, :] * units + h[:, None]
            y = tl.load(queries + offsets_i, h_mask & (i < m)[None, :], 0).to(sums.dtype)
            x = tl.load(keys + offsets_j, h_mask & (j < n)[None, :], 0).to(sums.dtype)
            x, y = _term(x, small), _term(y, small)
            t = 1 - 2 * _ratio(x[:, None, :], y[:, :, None], small)
            sums += tl.sum(tl.load(v + h, h < units, 0)[:, None, None] * t, 0)
    offsets = row_i[:, None] * max_keys + j[None, :]
    sums = tl.where((i < m)[:, None] & (j < n)[None, :], sums, 0)
    tl.store(scores + offsets, sums, (i < max_queries)[:, None] & (j < max_keys)[None, :])


@triton.jit(do_not_specialize=BATCH_SIZES)
def _backward(
    keys,
    queries,
    v,
    key_lengths,
    query_lengths,
    grad,
    grad_keys,
    grad_queries,
    grad_v,
    max_keys,
    max_queries,
    units,
    block_keys: tl.constexpr,
    block_units: tl.constexpr,
    use_int64: tl.constexpr,
):
    """Write all gradients for a block of units of an instance, one query after another.

    Threads lie along the units, so each thread adds its own sums. `use_int64` must be True if 32
    bits cannot index an instance's numbers.
    """
    b = tl.program_id(0).to(tl.int64)
    first_h = tl.program_id(1) * block_units
    h = first_h + tl.arange(0, block_units)
    h_mask = h < units
    m = tl.minimum(tl.load(query_lengths + b), max_queries)
    n = tl.minimum(tl.load(key_lengths + b), max_keys)
    if not use_int64:
        m, n = m.to(tl.int32), n.to(tl.int32)
    keys += b * max_keys * units
    grad_keys += b * max_keys * units
    queries += b * max_queries * units
    grad_queries += b * max_queries * units
    grad += b * max_queries * max_keys
    last_h = tl.minimum(first_h + block_units, units)
    small = _is_small(keys, n, units, first_h, last_h, block_keys, block_units)
    small &= _is_small(queries, m, units, first_h, last_h, block_keys, block_units)
    w = tl.load(v + h, h_mask, 0)
    sums_v = tl.zeros_like(w)
    for first in range(0, n, block_keys):
        j = first + tl.arange(0, block_keys)
        mask, offsets = (j < n)[:, None] & h_mask[None, :], j[:, None] * units + h[None, :]
        x = _term(tl.load(keys + offsets, mask, 0).to(w.dtype), small)
        sums = tl.zeros_like(x)
        for i in range(m):
            y = _term(tl.load(queries + i * units + h, h_mask, 0).to(w.dtype), small)
            g = tl.load(grad + i * max_keys + j, j < n, 0)[:, None]
            r = _ratio(x, y[None, :], small)
            gr = g * r
            d = gr - gr * r
            sums += d
            sums_v += tl.sum(g - 2 * gr, 0)
            total = tl.load(grad_queries + i * units + h, h_mask, 0) + 4 * w * tl.sum(d, 0)
            tl.store(grad_queries + i * units + h, total, h_mask)
        tl.store(grad_keys + offsets, 4 * w[None, :] * sums, mask)
        tl.debug_barrier()  # the next block of keys reads `grad_queries`, so wait for all threads
    tl.store(grad_v + b * units + h, sums_v, h_mask)
