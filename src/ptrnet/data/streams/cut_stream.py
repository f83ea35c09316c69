"""Answers cut at random positions: what comes before is known, what comes after is learned."""

import numpy as np
import torch
from torch import Tensor

from ptrnet.data.random_streams import CUTS
from ptrnet.data.streams.batch_stream import BatchStream
from ptrnet.masks import length_mask
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, CutBatch


class CutStream(BatchStream[CutBatch]):
    """The batches of a stream, each example several times, with its answer cut.

    Batch k is a function of the stream's batch k and of `(seed, k)` alone.

    Args:
        stream: of examples.
        task: what its examples are of.
        num_cuts: of each answer. All answers of a batch are cut after the same number of tokens.
        seed: of the cuts.
    """

    def __init__(self, stream: BatchStream[Batch], task: Task, num_cuts: int, seed: int) -> None:
        super().__init__(stream.first, stream.num_prefetch)
        self.stream, self.task, self.num_cuts, self.seed = stream, task, num_cuts, seed
        self.held_out, self.fingerprint = stream.held_out, stream.fingerprint

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> CutBatch:
        """See `BatchStream`; each process draws cuts of its own."""
        rng = np.random.default_rng([self.seed, CUTS, k, rank])
        return cut_batch(rng, self.task, self.stream.batch(k, rank, world_size), self.num_cuts)


def cut_batch(rng: np.random.Generator, task: Task, batch: Batch, num_cuts: int) -> CutBatch:
    """Every example `num_cuts` times, cut after a number of tokens that is drawn uniformly.

    Where any first element and either direction of an answer is right (`Task.circular`), these
    are drawn too, and the first token is always known.
    """
    inputs, lengths, targets, target_lengths = (
        tensor.repeat_interleave(num_cuts, 0) for tensor in batch
    )
    if task.circular:
        targets = _random_rotations(rng, targets, target_lengths - 1)
    longest = int(target_lengths.max())
    min_known = int(task.circular and longest > 1)
    num_known = int(rng.integers(min_known, max(longest, 1)))
    return CutBatch(inputs, lengths, targets, target_lengths, num_known)


def _random_rotations(rng: np.random.Generator, targets: Tensor, lengths: Tensor) -> Tensor:
    """`(B, M)` circular sequences of `lengths` `(B,)`, begun at random and run either way."""
    starts = torch.from_numpy(rng.integers(lengths.clamp(min=1).numpy()))
    directions = torch.from_numpy(rng.integers(2, size=len(lengths)) * 2 - 1)
    steps = torch.arange(targets.shape[1]).expand_as(targets)
    rotated = starts[:, None] + directions[:, None] * steps
    mask = length_mask(lengths, targets.shape[1])
    return targets.gather(1, torch.where(mask, rotated % lengths.clamp(min=1)[:, None], steps))
