"""A step of an LSTM decoder and where it points, in one go, on a CPU.

For some hundred rows a cell, a query, their scores and a softmax take as long to start and to end
on all threads as to compute. Here each thread takes its slice of the batch through all of them, and
the weights are packed once for all steps of a search.
"""

import numpy as np
import torch
from torch import Tensor

from ptrnet.errors import ShapeError
from ptrnet.kernels.additive.cpu import PreparedKeys
from ptrnet.kernels.lstm.cpu import MAX_FUSED, MIN_SLICE_ROWS
from ptrnet.kernels.lstm.gates import forward_step
from ptrnet.kernels.lstm.weights import Weights
from ptrnet.kernels.numerics import as_array
from ptrnet.kernels.packed import vector_kernel
from ptrnet.kernels.threads import even_cuts, run_slices


def can_serve(features: int, units: int) -> bool:
    """Whether `PointerStep` serves a decoder of so many inputs and units on this processor."""
    kernel = vector_kernel(torch.float32)
    if kernel is None or features > MAX_FUSED:
        return False
    # Else the zeros that fill up the last panel would stand between two queries.
    return units % kernel.PANEL_COLUMNS == 0


class PointerStep:
    """Steps over the same keys, one after the other, without gradients; where `can_serve`.

    All tensors are float32. Weights and keys are those of its making.

    Args:
        weights: of the decoder, of d inputs and H units.
        query: `(H, H)`, W2 of the additive score.
        keys: what is pointed at, N of H units.

    Raises:
        ShapeError: keys of other units.
    """

    def __init__(self, weights: Weights, query: Tensor, keys: PreparedKeys) -> None:
        if keys.shape[2] != weights.hidden.shape[1]:
            raise ShapeError(f"expected keys of {weights.hidden.shape[1]} units, got {keys.shape}")
        bias = (weights.input_bias + weights.hidden_bias)[None]
        self._fused = as_array(torch.cat([weights.input.t(), bias]))
        kernel = vector_kernel(torch.float32)
        assert kernel is not None  # or `can_serve` had said no
        self._multiply = kernel.multiply
        self._hidden = kernel.pack(as_array(weights.hidden).T)
        self._query, self._keys = kernel.pack(as_array(query).T), keys
        self._features, self._units = weights.input.shape[1], weights.hidden.shape[1]
        self._keep(0)

    def __call__(
        self, inputs: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Log-probabilities `(B, K, N)` of the keys, -inf on padding, and the next state.

        Args:
            inputs: `(B, K, d)`.
            state: `(B, K, H)` each.

        Raises:
            ShapeError: shapes that do not fit each other.
        """
        (batch, _, units), size = self._keys.shape, inputs.shape[1]
        rows, shape = batch * size, (batch, size, units)
        shapes = [tuple(tensor.shape) for tensor in (inputs, *state)]
        if shapes != [(batch, size, self._features), shape, shape]:
            expected = f"({batch}, K, {self._features}) and a state of {units} units"
            raise ShapeError(f"expected inputs {expected}, got {shapes}")
        if self._gates.shape[1] != rows:
            self._keep(rows)
        # A sequence of one step: `forward_step` says what is what.
        h, c = _empty(2, rows, units), _empty(2, rows, units)
        c[0] = state[1].reshape(rows, units)
        scores, queries, gates = self._keys.zeros(size), _empty(*shape), self._gates
        tensors = (inputs.reshape(1, rows, -1), c, h, state[0], queries, scores)
        x, *states, before, query_array, score_array = (as_array(tensor) for tensor in tensors)
        before, after = before.reshape(rows, units), states[1][1]
        query_rows = query_array.reshape(rows, units)
        cuts = even_cuts(batch, min(batch, rows // MIN_SLICE_ROWS))
        counts = [0] * (len(cuts) - 1)

        def run(k: int, first: int, last: int) -> None:
            rows = slice(first * size, last * size)
            sums = gates[0, rows]  # which become the gates: each row is read before it is written
            self._multiply(before[rows], self._hidden, sums)
            arrays = (x, self._fused, gates, *states, self._lengths)
            forward_step(0, rows.start, rows.stop, sums, *arrays)
            self._multiply(after[rows], self._query, query_rows[rows])
            counts[k] = self._keys.write_scores(first, last, query_array, score_array)
            self._keys.write_log_softmax(first, last, score_array)

        run_slices(run, cuts)
        if any(counts):  # too large for prepared keys
            scores = self._keys(queries)
            self._keys.write_log_softmax(0, batch, as_array(scores))
        return scores, (h[1].view(shape), c[1].view(shape))

    def _keep(self, rows: int) -> None:
        """Keeps from step to step the memory of the gates, and lengths of one step each."""
        self._gates = as_array(_empty(1, rows, 4 * self._units))
        self._lengths = np.ones(rows, dtype=np.int64)


def _empty(*shape: int) -> Tensor:
    """Memory in float32, whatever PyTorch's default is."""
    return torch.empty(shape, dtype=torch.float32)
