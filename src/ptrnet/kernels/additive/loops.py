"""The loops of the CPU kernel, compiled: each over the instances `first` to `last` of a batch.

Arrays are those of `cpu.py`: keys `(B, N, H)` and queries `(B, M, H)`, bfloat16 as uint16, `v` in
the type of all sums, lengths `(B,)`. `a` and `c` are the exponentials of keys and queries (see
`factorised.py`). The factorised loops count the numbers that are too large for that: if there are
any, the result is discarded and the direct loops, which call tanh, compute it.
"""

import math

import numpy as np

from ptrnet.kernels.numerics import (
    divide,
    exp,
    load,
    reassociating_inline,
    reassociating_jit,
    store,
    widest_vectors,
)

_LARGEST = 1e38  # of products of exponentials, which may overflow: 1 / (1 + A C) is 0 either way


@reassociating_inline
def write_exponentials(values, rows, bound, out):
    """`out = exp(2 values)` for the first `rows`; returns how many values are not below `bound`.

    NaN counts as not below.
    """
    widest_vectors()
    two = out.dtype.type(2)
    large = 0
    for j in range(rows):
        for h in range(values.shape[1]):
            x = load(values[j, h])
            large += not abs(x) < bound
            out[j, h] = exp(two * x)
    return large


@reassociating_inline
def write_scores(a, n, c, m, v, scores):
    """Writes the scores `(M, N)` of the first n keys and m queries of an instance."""
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
    """Writes the exponentials `a`; returns how many numbers of keys are too large."""
    widest_vectors()
    large = 0
    for b in range(first, last):
        large += write_exponentials(keys[b], key_lengths[b], bound, a[b])
    return large


@reassociating_jit
def prepared_forward(first, last, bound, a, v, key_lengths, queries, scores):
    """Writes the scores of keys whose exponentials are `a`; returns how many numbers of queries are
    too large.
    """
    widest_vectors()
    c = np.empty(queries.shape[1:], v.dtype)
    large = 0
    for b in range(first, last):
        large += write_exponentials(queries[b], queries.shape[1], bound, c)
        write_scores(a[b], key_lengths[b], c, queries.shape[1], v, scores[b])
    return large


@reassociating_inline
def write_log_softmax(row, n):
    """Turns n scores into log-probabilities in place; what follows them in the row becomes -inf."""
    widest_vectors()
    largest, total = row[0], row.dtype.type(0)
    for j in range(n):
        largest = max(largest, row[j])
    for j in range(n):
        total += exp(row[j] - largest)
    log_total = largest + row.dtype.type(math.log(total))
    for j in range(n):
        row[j] -= log_total
    for j in range(n, row.shape[0]):
        row[j] = -np.inf


@reassociating_jit
def factorised_forward(first, last, bound, keys, queries, v, key_lengths, query_lengths, scores):
    """Writes the scores; returns how many numbers of keys and queries are too large."""
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
    """Writes the gradients of keys and queries, and adds that of v to `grad_v`."""
    widest_vectors()
    units = v.shape[0]
    one, two, four = v.dtype.type(1), v.dtype.type(2), v.dtype.type(4)
    largest = v.dtype.type(_LARGEST)
    a, c = np.empty(keys.shape[1:], v.dtype), np.empty(queries.shape[1:], v.dtype)
    grad_a, grad_c, sums = np.empty_like(a), np.empty_like(c), np.empty_like(v)
    for b in range(first, last):
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
        _write_scaled(grad_a, four, v, grad_keys[b])
        _write_scaled(grad_c, four, v, grad_queries[b])


@reassociating_inline
def _write_scaled(sums, factor, v, out):
    """`out = factor * v * sums`, in the type of `out`."""
    widest_vectors()
    for j in range(out.shape[0]):
        for h in range(out.shape[1]):
            out[j, h] = store(factor * v[h] * sums[j, h], out[j, h])


@reassociating_jit
def direct_forward(first, last, keys, queries, v, key_lengths, query_lengths, scores):
    """Writes the scores, for numbers of any magnitude."""
    for b in range(first, last):
        for i in range(query_lengths[b]):
            for j in range(key_lengths[b]):
                s = v.dtype.type(0)
                for h in range(v.shape[0]):
                    s += v[h] * np.tanh(load(keys[b, j, h]) + load(queries[b, i, h]))
                scores[b, i, j] = s


@reassociating_jit
def direct_backward(
    first, last, keys, queries, v, key_lengths, query_lengths, grad, grad_keys, grad_queries, grad_v
):
    """As `factorised_backward`, for numbers of any magnitude."""
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
        _write_scaled(grad_a, one, v, grad_keys[b])
        _write_scaled(grad_c, one, v, grad_queries[b])
