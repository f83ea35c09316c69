"""An endless stream of fresh examples, drawn and labelled as the training goes."""

from collections.abc import Sequence

import numpy as np
import torch

from ptrnet.data.random_streams import TRAIN
from ptrnet.data.streams.batch_stream import BatchStream
from ptrnet.data.streams.ranks import rows_of_rank
from ptrnet.data.symmetries import permute_elements
from ptrnet.tasks.base import Task
from ptrnet.types import Batch


class ExampleStream(BatchStream[Batch]):
    """Fresh examples; the same task, sizes, seed and so on give the same batch k.

    All instances of a batch have one size, drawn uniformly from `sizes`. So answers are padded, and
    instances are not.

    Args:
        task: draws and labels the instances.
        sizes: the numbers of elements to draw from.
        batch_size: examples in a batch, B.
        seed: of the stream.
        split: `TRAIN` or `VALID`.
        first: the number of the first batch that iteration gives.
        num_prefetch: how many batches a thread makes ahead.
        labeller: the algorithm that answers, one of `task.labellers`; the first when None.
        num_batches: how many there are; in each epoch all come once, in an order of its own. When
            None all are new.
    """

    def __init__(
        self,
        task: Task,
        sizes: Sequence[int],
        batch_size: int,
        seed: int,
        split: int = TRAIN,
        first: int = 0,
        num_prefetch: int = 4,
        labeller: str | None = None,
        num_batches: int | None = None,
    ) -> None:
        super().__init__(first, num_prefetch)
        self.task, self.sizes, self.batch_size = task, np.asarray(sizes), batch_size
        self.seed, self.split, self.labeller = seed, split, labeller
        self.num_batches = num_batches

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> Batch:
        """See `BatchStream`; the other processes' rows are drawn, but not labelled."""
        rng = np.random.default_rng([self.seed, self.split, self._number(k)])
        n = int(rng.choice(self.sizes))
        inputs = self.task.sample(rng, self.batch_size, n)
        inputs = inputs[rows_of_rank(self.batch_size, rank, world_size)]
        if self.task.order != "given":
            inputs = permute_elements(inputs, self.task.element_order(inputs))
        targets = self.task.to_tokens(self.task.label(inputs, self.labeller))
        return Batch(
            torch.from_numpy(inputs.astype(np.float32)),
            torch.full((len(inputs),), n),
            torch.from_numpy(targets.indices),
            torch.from_numpy(targets.lengths),
        )

    def _number(self, k: int) -> int:
        """Which of the batches that there are comes at place k."""
        if self.num_batches is None:
            return k
        epoch, place = divmod(k, self.num_batches)
        # Four numbers: a batch's generator has three, and shares no random number with this one.
        order = np.random.default_rng([self.seed, self.split, epoch, 1])
        return int(order.permutation(self.num_batches)[place])
