"""A step of `PointerStep` for a slice of the batch, compiled as one function.

Each call of a compiled function lets the interpreter's lock go and takes it again, and two threads
wait for each other at that. So all that a thread does in a step is one call.
"""

import numpy as np

from ptrnet.jit import assign
from ptrnet.kernels.additive.cpu import write_exponentials, write_log_softmax, write_scores
from ptrnet.kernels.lstm.cpu import write_step
from ptrnet.kernels.numerics import reassociating_jit, widest_vectors
from ptrnet.kernels.packed import multiply_tiles


@reassociating_jit
def step(
    first,
    slices,
    rows,
    row_x,
    row_h,
    row_c,
    gates,
    steps,
    ended,
    x,
    h,
    c,
    next_h,
    next_c,
    log_probs,
    hidden,
    fused,
    query,
    bound,
    keys,
    v,
    key_lengths,
):
    """Instances `first`, `first + slices` and so on; returns how many numbers are too large.

    In a batch in the order of its sizes neighbours end at similar steps: so slices stay even.

    Args:
        first: number of the first instance, below `slices`.
        slices: of the batch.
        rows: `(R, 2)`. This and the next five are memory to work in, of which a slice has its own
            rows: instance and prefix of those that have not ended, which stand together there.
        row_x: `(1, R, d)`.
        row_h: `(2, R, H)`.
        row_c: `(2, R, H)`.
        gates: `(1, R, 4H)`.
        steps: `(R,)`, ones.
        ended: `(B, K)` boolean: the prefixes that are left out.
        x: `(B, K, d)` inputs.
        h: `(B, K, H)` hidden states.
        c: `(B, K, H)` cell states.
        next_h: `(B, K, H)`, written; 0 where a prefix is left out.
        next_c: likewise.
        log_probs: `(B, K, N)`, written; NaN where a prefix is left out.
        hidden: the recurrent weights, packed.
        fused: `(d + 1, 4H)`, the weights of the inputs and the biases' sum.
        query: W2, packed.
        bound: the number from which on one of a query is too large.
        keys: `(B, N, H)`, their exponentials.
        v: `(H,)`.
        key_lengths: `(B,)`.
    """
    widest_vectors()
    batch, size = ended.shape
    start = end = first * (-(-batch // slices) * size)
    for b in range(first, batch, slices):
        for k in range(size):
            if ended[b, k]:
                next_h[b, k], next_c[b, k], log_probs[b, k] = 0, 0, np.nan
            else:
                rows[end, 0], rows[end, 1] = b, k
                assign(row_x[0, end], x[b, k])
                assign(row_h[0, end], h[b, k])
                assign(row_c[0, end], c[b, k])
                end += 1
    sums = gates[0, start:end]  # which become the gates: each row is read before it is written
    multiply_tiles(row_h[0, start:end], hidden, sums, False)
    # A sequence of one step: `write_step` says what is what. From a constant row 0 on, in an array
    # of the slice's own, LLVM makes a step a quarter slower.
    write_step(0, start, end, sums, row_x, fused, gates, row_c, row_h, steps)
    queries = row_h[0]  # in the place of the states before
    multiply_tiles(row_h[1, start:end], query, queries[start:end], False)
    exponentials = np.empty((1, len(v)), v.dtype)
    large = 0
    for row in range(start, end):
        b, k = rows[row]
        assign(next_h[b, k], row_h[1, row])
        assign(next_c[b, k], row_c[1, row])
        large += write_exponentials(queries[row : row + 1], 1, bound, exponentials)
        write_scores(keys[b], key_lengths[b], exponentials, 1, v, log_probs[b, k : k + 1])
        write_log_softmax(log_probs[b, k], key_lengths[b])
    return large
