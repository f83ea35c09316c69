"""Answers cut at random places: what comes before is known, what comes behind is to be learned."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ptrnet.data.ahead import ahead
from ptrnet.data.file_stream import FileStream
from ptrnet.data.stream import ExampleStream
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, CutBatch

_CUTS = 5  # beside the streams of examples


class CutStream:
    """The batches of a stream, each example with its answer cut a few times.

    Batch k is a pure function of the stream's batch k and `(seed, k)`.

    Args:
        stream: of examples.
        cuts: of each answer. All of a batch are behind the same number of tokens.
    """

    def __init__(self, stream: ExampleStream | FileStream, cuts: int) -> None:
        self.stream, self.cuts = stream, cuts

    def batch(self, k: int, rank: int = 0, ranks: int = 1) -> CutBatch:
        """Batch number k, or the part of it that process `rank` of `ranks` trains on."""
        rng = np.random.default_rng([self.stream.seed, _CUTS, k, rank])
        return cut(rng, self.stream.task, self.stream.batch(k, rank, ranks), self.cuts)

    def batches(self, rank: int = 0, ranks: int = 1) -> Iterator[CutBatch]:
        """Batches from the stream's first on, without end; of each the part of one process."""
        make = partial(self.batch, rank=rank, ranks=ranks)
        return ahead(make, self.stream.first, self.stream.ahead)


def cut(rng: np.random.Generator, task: Task, batch: Batch, cuts: int) -> CutBatch:
    """Every example `cuts` times, with the number of tokens that are known of their answers.

    That is drawn evenly. Where any beginning and either direction of an answer is right
    (`Task.circular`), these are drawn, too, and the first token is known.
    """
    inputs, lengths, targets, ends = (rows.repeat_interleave(cuts, 0) for rows in batch)
    if task.circular:
        targets = _turned(rng, targets, ends - 1)
    first = min(int(task.circular), int(ends.max()) - 1)
    known = int(rng.integers(first, max(int(ends.max()), first + 1)))
    return CutBatch(Batch(inputs, lengths, targets, ends), known)


def _turned(rng: np.random.Generator, targets: Tensor, lengths: Tensor) -> Tensor:
    """`(B, M)` circular sequences of `lengths` `(B,)`, from random places on, either way."""
    starts = rng.integers(lengths.clamp(min=1).numpy())
    ways = rng.integers(2, size=len(lengths)) * 2 - 1
    places = torch.arange(targets.shape[1]).expand_as(targets)
    turned = torch.from_numpy(starts)[:, None] + torch.from_numpy(ways)[:, None] * places
    inside = places < lengths[:, None]
    return targets.gather(1, torch.where(inside, turned % lengths.clamp(min=1)[:, None], places))
