"""A step of an LSTM decoder and its pointer in one compiled call, on a CPU.

A step has four parts: the cell, the query, the scores and the softmax. For about a hundred
prefixes, starting and ending each part on all threads takes as long as the arithmetic. Here each
thread computes all parts for its slice of the batch. The weights are packed (see `packed.py`) once
for all steps of a search.
"""

import numpy as np
import torch
from torch import Tensor, nn

from ptrnet.errors import ShapeError
from ptrnet.jit import assign
from ptrnet.kernels.additive.cpu import (
    PreparedKeys,
    write_exponentials,
    write_log_softmax,
    write_scores,
)
from ptrnet.kernels.lstm.cpu import MAX_FUSED, MIN_SLICE_ROWS, write_step
from ptrnet.kernels.lstm.plain import Weights
from ptrnet.kernels.numerics import as_array, reassociating_jit, widest_vectors
from ptrnet.kernels.packed import PANEL_COLUMNS, can_multiply, multiply_tiles, pack
from ptrnet.kernels.threads import run_slices
from ptrnet.masks import length_mask


def can_serve(features: int, units: int) -> bool:
    """Whether `PointerStep` supports this many inputs and units on this processor."""
    # `multiply_tiles` writes whole panels. If the last panel were not full, its zeros would
    # overwrite the next row.
    fills_panels = units % PANEL_COLUMNS == 0
    return fills_panels and features <= MAX_FUSED and can_multiply(torch.float32)


class PointerStep:
    """Function that computes steps of a decoder over the same keys.

    Use this class only if `can_serve` is True. There are no gradients. All tensors are float32.
    Make a new object if the weights or keys change.

    Args:
        weights: weights of the decoder, with d inputs and H units.
        query: `(H, H)`, W2 of the additive score.
        keys: N keys of H units, at which the decoder points.

    Raises:
        ShapeError: the keys have another number of units than the decoder.
    """

    def __init__(self, weights: Weights, query: Tensor, keys: PreparedKeys) -> None:
        if keys.shape[2] != weights.hidden.shape[1]:
            raise ShapeError(f"expected keys of {weights.hidden.shape[1]} units, got {keys.shape}")
        bias = (weights.input_bias + weights.hidden_bias)[None]
        fused = as_array(torch.cat([weights.input.t(), bias]))
        hidden, packed_query = (pack(as_array(w).T) for w in (weights.hidden, query))
        self._weights = hidden, fused, packed_query
        self._query, self._keys = query.clone(), keys
        self._features, self._units = weights.input.shape[1], weights.hidden.shape[1]

    def __call__(
        self, inputs: Tensor, state: tuple[Tensor, Tensor], ended: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return log-probabilities `(B, K, N)` of the keys, -inf on padding, and the next state.

        Args:
            inputs: `(B, K, d)`.
            state: hidden and cell state, `(B, K, H)` each.
            ended: `(B, K)` boolean: the prefixes to skip. A skipped prefix has NaN as its
                log-probabilities and 0 as its states. None: no prefix is skipped.

        Raises:
            ShapeError: the shapes do not fit each other.
        """
        (batch, n, units), size = self._keys.shape, inputs.shape[1]
        shape = (batch, size, units)
        received = [tuple(tensor.shape) for tensor in (inputs, *state)]
        if received != [(batch, size, self._features), shape, shape]:
            expected = f"({batch}, K, {self._features}) and a state of {units} units"
            raise ShapeError(f"expected inputs {expected}, got {received}")
        running = batch * size
        if ended is None:
            ended = torch.zeros(batch, size, dtype=torch.bool, device="cpu")
        elif ended.shape != (batch, size):
            raise ShapeError(f"expected ended of shape {(batch, size)}, got {tuple(ended.shape)}")
        else:
            running -= int(ended.sum())
        slices = max(1, min(torch.get_num_threads(), batch, running // MIN_SLICE_ROWS))
        memory = self._memory(slices * -(-batch // slices) * size)
        h, c, scores = _empty(*shape), _empty(*shape), _empty(batch, size, n)
        before = tuple(map(as_array, (ended, inputs, *state)))
        after = tuple(map(as_array, (h, c, scores)))
        counts = [0] * slices

        def run(k: int, *_: int) -> None:
            counts[k] = step(k, slices, memory, before, after, self._weights, self._keys.arrays)

        run_slices(run, range(slices + 1))
        if self._keys.is_large or any(counts):
            scores = self._keys(nn.functional.linear(h, self._query))
            is_key = length_mask(self._keys.lengths, n)[:, None]
            scores = torch.where(is_key, scores, -torch.inf).log_softmax(-1)
            scores[ended] = torch.nan
        return scores, (h, c)

    def _memory(self, rows: int) -> tuple[np.ndarray, ...]:
        """Allocate the working memory of `step` for this number of rows."""
        d, units = self._features, self._units
        sizes = (1, rows, d), (2, rows, units), (2, rows, units), (1, rows, 4 * units)
        indices, steps = np.empty((rows, 2), np.int64), np.ones(rows, np.int64)
        return (indices, *(as_array(_empty(*size)) for size in sizes), steps)


def _empty(*shape: int) -> Tensor:
    """Return an uninitialised float32 tensor, whatever PyTorch's default type and device are."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


@reassociating_jit
def step(first, slices, memory, before, after, weights, prepared):
    """Compute the step of instances `first`, `first + slices` and so on.

    A thread makes one compiled call for each step. Each call releases and takes the interpreter's
    lock, so with several calls the threads would wait for each other.

    A slice takes every `slices`-th instance. In a batch sorted by size, neighbours end at similar
    steps, so all slices keep about the same number of running prefixes.

    Args:
        first: number of the first instance, below `slices`.
        slices: number of slices of the batch.
        memory: working memory, arrays with R rows for all slices. Each slice writes its running
            prefixes to a separate range of rows. The arrays are: instance and prefix `(R, 2)`,
            inputs `(1, R, d)`, hidden and cell states `(2, R, H)` each, gates `(1, R, 4H)`, and
            ones `(R,)`.
        before: the prefixes to skip (boolean, `(B, K)`), inputs `(B, K, d)`, and hidden and cell
            states `(B, K, H)`.
        after: hidden and cell states `(B, K, H)` and log-probabilities `(B, K, N)`. All are
            written. Skipped prefixes get states of 0 and log-probabilities of NaN.
        weights: the recurrent weights (packed), the input weights `(d + 1, 4H)`, and W2 (packed).
            The last row of the input weights is the sum of the biases.
        prepared: `PreparedKeys.arrays`.

    Returns:
        How many numbers of the queries are too large for `write_exponentials`. If this is not 0,
        the scores are wrong, and the caller computes the scores with `PreparedKeys`.
    """
    rows, row_x, row_h, row_c, gates, steps = memory
    ended, x, h, c = before
    next_h, next_c, log_probs = after
    hidden, fused, query = weights
    bound, keys, v, key_lengths = prepared
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
    sums = gates[0, start:end]  # `write_step` reads a row of sums, then overwrites the row
    multiply_tiles(row_h[0, start:end], hidden, sums, False)
    # Run `write_step` on sequences of one step. Pass whole arrays, and `start` as the first row.
    # With views of the slice, the first row would be the constant 0, and then LLVM's code is a
    # quarter slower.
    write_step(0, start, end, sums, row_x, fused, gates, row_c, row_h, steps)
    queries = row_h[0]  # overwrite the former hidden states, which are no longer needed
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
