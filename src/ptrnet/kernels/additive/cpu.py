"""The compiled CPU kernel: factorised as in `factorised.py`, fused, and ragged.

Nothing of size (B, M, N, H) exists, forward or backward: `r = 1 / (1 + A C)` is computed again
where the gradient needs it. Padded keys and queries are not visited. bfloat16 is read as it is.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from ptrnet.kernels.additive import loops, reference
from ptrnet.kernels.additive.arguments import Arguments, check_arguments, check_shapes, promote
from ptrnet.kernels.additive.factorised import MAX_MAGNITUDE
from ptrnet.kernels.gradients import needs_plain
from ptrnet.kernels.numerics import as_array
from ptrnet.kernels.threads import run_slices

# Entries v[h] * r below which a second thread costs more than it saves (about 50 microseconds).
MIN_ENTRIES = 200_000

_BOUNDS: dict[torch.dtype, np.floating] = {
    torch.float32: np.float32(MAX_MAGNITUDE[torch.float32]),
    torch.float64: np.float64(MAX_MAGNITUDE[torch.float64]),
}


def additive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """As `ptrnet.kernels.additive_scores`; tensors on the CPU."""
    arguments = check_arguments(keys, queries, v, key_lengths, query_lengths)
    return _Scores.apply(*_to_kernel_types(arguments))


def prepared_scores(keys: Tensor, v: Tensor, key_lengths: Tensor | None = None) -> "PreparedKeys":
    """As `ptrnet.kernels.prepared_scores`; tensors on the CPU."""
    return PreparedKeys(_to_kernel_types(check_arguments(keys, keys, v, key_lengths, None)))


class PreparedKeys:
    """The exponentials of keys, computed once; where they overflow, every call starts again.

    Args:
        arguments: in the kernel's types; the queries are not used.

    Attributes:
        lengths: `(B,)`.
        is_large: whether they overflow.
    """

    def __init__(self, arguments: Arguments) -> None:
        self._keys, _, self._v, self.lengths, _ = arguments
        self._cuts: dict[int, list[int]] = {}  # by the number of queries, M
        # Made once: to make arrays of tensors takes as long as to score a few keys.
        self._exponentials = as_array(torch.empty(self._keys.shape, dtype=self._v.dtype))
        self._v_array, self._lengths_array = as_array(self._v), as_array(self.lengths)
        dtype, cuts = self._v.dtype, self._cuts_for(1)
        arrays = [as_array(self._keys), self._lengths_array, self._exponentials]
        self.is_large = _count_large(loops.prepare_keys, cuts, dtype, arrays) > 0

    def __call__(self, queries: Tensor) -> Tensor:
        """Scores `(B, M, N)` of queries `(B, M, H)`. Raises ShapeError for other queries."""
        check_shapes(self._keys, queries, self._v)  # before their work is shared out
        if queries.dtype not in (torch.bfloat16, self._v.dtype):
            queries = queries.to(self._v.dtype)
        if not self.is_large:
            (batch, n, _), m = self.shape, queries.shape[1]
            scores, cuts = torch.zeros(batch, m, n, dtype=self._v.dtype), self._cuts_for(m)
            arrays = [*self.arrays[1:], as_array(queries), as_array(scores)]
            if not _count_large(loops.prepared_forward, cuts, self._v.dtype, arrays):
                return scores
        return additive_scores(self._keys, queries, self._v, self.lengths)

    @property
    def arrays(self) -> tuple[np.floating, np.ndarray, np.ndarray, np.ndarray]:
        """The bound of queries, the keys' exponentials, v and lengths, as compiled loops take them.

        They hold where the keys are not `is_large`.
        """
        bound = _BOUNDS[self._v.dtype]
        return bound, self._exponentials, self._v_array, self._lengths_array

    @property
    def shape(self) -> tuple[int, ...]:
        """`(B, N, H)`."""
        return tuple(self._keys.shape)

    def _cuts_for(self, m: int) -> list[int]:
        if m not in self._cuts:
            self._cuts[m] = _equal_work_cuts(self.lengths * m, len(self._v))
        return self._cuts[m]


def _to_kernel_types(arguments: Arguments) -> Arguments:
    """In one float type; or keys and queries of bfloat16 and float32 with a `v` of float32."""
    types = {arguments.keys.dtype, arguments.queries.dtype, arguments.v.dtype}
    if types <= {torch.bfloat16, torch.float32}:
        return arguments._replace(v=arguments.v.float())
    return promote(arguments)


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
        arrays = [as_array(t) for t in (keys, queries, v, key_lengths, query_lengths, scores)]
        cuts = _equal_work_cuts(key_lengths * query_lengths, len(v))
        large = _count_large(loops.factorised_forward, cuts, v.dtype, arrays)
        if large:
            run_slices(lambda _, first, last: loops.direct_forward(first, last, *arrays), cuts)
        ctx.is_factorised = not large  # type: ignore[attr-defined]
        ctx.save_for_backward(keys, queries, v, key_lengths, query_lengths)
        return scores

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        if needs_plain(grad):
            return reference.gradients(Arguments(*ctx.saved_tensors), grad)  # type: ignore[attr-defined]
        keys, queries, v, *lengths = ctx.saved_tensors  # type: ignore[attr-defined]
        is_factorised = ctx.is_factorised  # type: ignore[attr-defined]
        loop: Any = loops.factorised_backward if is_factorised else loops.direct_backward
        cuts = _equal_work_cuts(lengths[0] * lengths[1], len(v))
        grad_keys, grad_queries = (torch.empty(x.shape, dtype=x.dtype) for x in (keys, queries))
        # A row for each slice, added in one order: the same sum on every run. In float64, as
        # every entry of the batch goes into it.
        grad_v = torch.zeros(len(cuts) - 1, len(v), dtype=torch.float64)
        tensors = (keys, queries, v, *lengths, grad, grad_keys, grad_queries, grad_v)
        *arrays, rows = (as_array(t) for t in tensors)
        run_slices(lambda k, first, last: loop(first, last, *arrays, rows[k]), cuts)
        return grad_keys, grad_queries, grad_v.sum(0).to(v.dtype), None, None


def _count_large(loop: Any, cuts: list[int], dtype: torch.dtype, arrays: list[Any]) -> int:
    """Runs a factorised loop on slices; how many numbers were too large for it."""
    counts = [0] * (len(cuts) - 1)

    def run(k: int, first: int, last: int) -> None:
        counts[k] = loop(first, last, _BOUNDS[dtype], *arrays)

    run_slices(run, cuts)
    return sum(counts)


def _equal_work_cuts(work: Tensor, units: int) -> list[int]:
    """Cuts of a batch into slices of about equal work, one a thread; one where it is too little.

    `work` is `(B,)`, the pairs of a key and a query of each instance.
    """
    threads = torch.get_num_threads()
    total = int(work.sum())
    if threads == 1 or total * units < MIN_ENTRIES:
        return [0, len(work)]
    shares = torch.arange(1, threads) * total // threads
    return [0, *torch.searchsorted(work.cumsum(0), shares).tolist(), len(work)]
