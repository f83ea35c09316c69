"""Scores of tokens by where they lie along edges, compiled, for decoding on a CPU.

The formulas are those of `ptrnet.models.parts.frames`, which computes all else: with gradients, on
a GPU, in other types, and where PyTorch records. They are many operations on few numbers, and
PyTorch takes 20 times as long for one prefix, three times for many.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.errors import ShapeError
from ptrnet.kernels.threads import even_cuts, run_slices

MIN_ROWS_OF_A_THREAD = 16


class Round(NamedTuple):
    """The weights of a round, `w' max(0, W f + b)` of F features f, with U hidden units."""

    weight: Tensor  # (U, F)
    bias: Tensor  # (U,)
    score: Tensor  # (1, U)


class FrameScores:
    """The scores of the same points for prefixes that come one after the other, as in decoding.

    All tensors are float32 on a CPU. Weights, points and keys are those of its making.

    Args:
        points: `(B, N, 2)` the elements' coordinates.
        keys: `(U, B, 1, S + N)`, projected to the U hidden units of a round.
        rounds: the weights, first that of the last edge.
        is_open: whether the edges are open ones of a triangulation.
    """

    def __init__(
        self, points: Tensor, keys: Tensor, rounds: Sequence[Round], is_open: bool
    ) -> None:
        from ptrnet.kernels.frames import loops
        from ptrnet.kernels.numerics import as_array

        columns = (
            (loops.FIRST_OPEN, loops.FURTHER_OPEN) if is_open else (loops.FIRST, loops.FURTHER)
        )
        weights = (tuple(map(as_array, parts)) for parts in zip(*rounds, strict=True))
        self._score, self._as_array, self._is_open = loops.score_prefixes, as_array, is_open
        self._points, self._keys = as_array(points), as_array(keys)
        self._weights = loops.order_features(*weights, *columns)

    def __call__(self, scores: Tensor, ends: Sequence[Tensor], queries: Tensor) -> Tensor:
        """The scores `(B, M, S + N)` after all rounds.

        Args:
            scores: `(B, M, S + N)` before them, -inf on padding.
            ends: three `(B, M)`, the tokens between which the prefixes' edges run.
            queries: `(B, M, U)`, projected.

        Raises:
            ShapeError: shapes that do not fit each other.
            IndexError: tokens that are none.
        """
        expected = (len(self._points), scores.shape[1], self._keys.shape[-1])
        if scores.shape != expected or any(
            t.shape != expected[:2] for t in (*ends, queries[..., 0])
        ):
            raise ShapeError(f"expected scores {expected}, ends and queries of as many prefixes")
        scores = scores.clone(memory_format=torch.contiguous_format)
        array, queries_array = self._as_array(scores), self._as_array(queries)
        tokens = tuple(map(self._as_array, ends))

        def run(k: int, begin: int, end: int) -> None:
            are_tokens = self._score(
                *(begin, end, self._is_open, array, self._points),
                *(tokens, queries_array, self._keys, self._weights),
            )
            if not are_tokens:
                raise IndexError(f"expected ends of edges in 0..{expected[2] - 1}")

        rows = scores.shape[0] * scores.shape[1]
        run_slices(run, even_cuts(len(scores), min(len(scores), rows // MIN_ROWS_OF_A_THREAD)))
        return scores
