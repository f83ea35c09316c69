"""An endless stream of fresh examples, produced ahead of the training that consumes it."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch

from ptrnet.data.streams.prefetch import prefetch
from ptrnet.data.streams.ranks import rows_of
from ptrnet.data.symmetries import permute_elements
from ptrnet.tasks.base import Task
from ptrnet.types import Batch

TRAIN, VALID = 0, 1  # the two streams of a seed share no example


class ExampleStream:
    """Batch k is a pure function of `(seed, split, k)`: a resumed run sees the same batches.

    All instances of a batch have one size, drawn uniformly from `sizes`, so nothing is padded
    but answers.

    Args:
        task: draws and labels the instances.
        sizes: the numbers of elements to draw from.
        batch_size: examples in a batch, B.
        seed: of the stream.
        split: `TRAIN` or `VALID`.
        first: the number of the first batch that iteration gives.
        ahead: batches kept ready by the producing thread.
        labeller: the algorithm that answers; the task's first when None.
    """

    def __init__(
        self,
        task: Task,
        sizes: Sequence[int],
        batch_size: int,
        seed: int,
        split: int = TRAIN,
        first: int = 0,
        ahead: int = 4,
        labeller: str | None = None,
    ) -> None:
        self.labeller = labeller
        self.task, self.sizes, self.batch_size = task, np.asarray(sizes), batch_size
        self.seed, self.split, self.first, self.ahead = seed, split, first, ahead

    def batch(self, k: int, rank: int = 0, ranks: int = 1) -> Batch:
        """Batch number k, or the part of it that process `rank` of `ranks` trains on."""
        rng = np.random.default_rng([self.seed, self.split, k])
        n = int(rng.choice(self.sizes))
        inputs = self.task.sample(rng, self.batch_size, n)
        inputs = inputs[rows_of(self.batch_size, rank, ranks)]
        if self.task.order != "given":
            inputs = permute_elements(inputs, self.task.element_order(inputs))
        targets = self.task.to_tokens(self.task.label(inputs, self.labeller))
        return Batch(
            torch.from_numpy(inputs.astype(np.float32)),
            torch.full((len(inputs),), n),
            torch.from_numpy(targets.indices),
            torch.from_numpy(targets.lengths),
        )

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batches(self, rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        """Batches from `first` on, without end; of each the part of one process."""
        return prefetch(partial(self.batch, rank=rank, ranks=ranks), self.first, self.ahead)
