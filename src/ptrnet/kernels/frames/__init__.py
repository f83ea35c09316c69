"""Scores of tokens by where they lie along edges, compiled, for decoding on a CPU.

The formulas are those of `ptrnet.models.parts.frames`, which computes all else: with gradients, on
a GPU, in other types, and where PyTorch records. They are many operations on few numbers, and
PyTorch takes 20 times as long for one prefix, three times for many.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.kernels.eager import is_eager
from ptrnet.kernels.threads import even_cuts, run_slices

# Loading compiled code takes as long as PyTorch for so many prefixes and steps, one at a time; of
# so many at a time it would be loaded at once.
PREFIXES_BEFORE_LOADING, MIN_ROWS = 256, 16
MIN_ROWS_OF_A_THREAD = 16

_seen = 0  # prefixes that PyTorch has computed in this process


class Round(NamedTuple):
    """The weights of a round: `w' max(0, W f + b)`."""

    weight: Tensor  # (U, f)
    bias: Tensor  # (U,)
    score: Tensor  # (1, U)


def is_compiled(scores: Tensor, points: Tensor, queries: Tensor) -> bool:
    """Whether `frame_scores` computes these: it can, and to load it is worth while.

    In a process it depends on what was computed before, and on nothing else: where the same
    commands run again, so does the same code.
    """
    global _seen
    tensors = (scores, points, queries)
    if torch.is_grad_enabled() or not is_eager(*tensors):
        return False
    if not all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors):
        return False
    rows = scores.shape[0] * scores.shape[1]
    if rows < MIN_ROWS and _seen < PREFIXES_BEFORE_LOADING:
        _seen += rows
        return False
    return True


def frame_scores(
    scores: Tensor,
    points: Tensor,
    ends: Sequence[Tensor],
    queries: Tensor,
    keys: Tensor,
    rounds: Sequence[Round],
    is_open: bool,
) -> Tensor:
    """The scores `(B, M, S + N)` after all rounds.

    Args:
        scores: `(B, M, S + N)` before them, -inf on padding.
        points: `(B, N, 2)` the elements' coordinates.
        ends: three `(B, M)`, the tokens between which the prefixes' edges run.
        queries: `(B, M, U)`, projected.
        keys: `(U, B, 1, S + N)`, projected.
        rounds: the weights, first that of the last edge.
        is_open: whether the edges are open ones of a triangulation.
    """
    from ptrnet.kernels.frames import loops
    from ptrnet.kernels.numerics import as_array

    columns = (loops.FIRST, loops.FURTHER)
    if is_open:
        columns = (loops.FIRST_OPEN, loops.FURTHER_OPEN)
    arrays = (tuple(map(as_array, parts)) for parts in zip(*rounds, strict=True))
    weights = loops.order_features(*arrays, *columns)
    scores = scores.clone(memory_format=torch.contiguous_format)
    of_prefixes = [as_array(scores), as_array(points), tuple(map(as_array, ends))]
    of_prefixes += [as_array(queries), as_array(keys)]

    def run(k: int, begin: int, end: int) -> None:
        loops.score_prefixes(begin, end, is_open, *of_prefixes, weights)

    rows = scores.shape[0] * scores.shape[1]
    run_slices(run, even_cuts(len(scores), min(len(scores), rows // MIN_ROWS_OF_A_THREAD)))
    return scores
