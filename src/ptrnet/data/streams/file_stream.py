"""An endless stream of a file's examples, each once in an epoch."""

from collections.abc import Sequence

import numpy as np
import torch

from ptrnet.data.batches import pad_batch
from ptrnet.data.random_streams import FILE_ORDER, FILE_TRANSFORMS
from ptrnet.data.streams.batch_stream import BatchStream
from ptrnet.data.streams.epochs import shuffled_batches
from ptrnet.data.streams.memmap import open_memmap
from ptrnet.data.streams.ranks import rows_of_rank
from ptrnet.data.streams.split import draw_held_out
from ptrnet.data.symmetries import Transform, canonicalize, identity
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, Floats, Indices


class FileStream(BatchStream[Batch]):
    """A file's examples; the same file, sizes, seed and so on give the same batch k.

    Each example comes once in every epoch; see `shuffled_batches`.

    Args:
        path: of the file; see `ptrnet.data.streams.memmap`.
        task: of its examples.
        sizes: the numbers of elements to train on; examples of other sizes are left out.
        batch_size: examples in a batch, B.
        seed: of the orders, of the held-out examples and of `transform`.
        first: the number of the first batch that iteration gives.
        num_prefetch: how many batches a thread makes ahead.
        transform: applied to examples each time that they are drawn.
        valid_share: the share of the examples that is never drawn, but stands in `held_out`.
        max_valid: the most examples that stand there.

    Raises:
        InputError: a file that cannot be used, without an instance of these sizes, or without an
            example that is not held out.
    """

    def __init__(
        self,
        path: str,
        task: Task,
        sizes: Sequence[int],
        batch_size: int,
        seed: int,
        first: int = 0,
        num_prefetch: int = 4,
        transform: Transform = identity,
        valid_share: float = 0.0,
        max_valid: int = 0,
    ) -> None:
        super().__init__(first, num_prefetch)
        self.task, self.batch_size, self.seed, self.transform = task, batch_size, seed, transform
        self._examples = open_memmap(path, task)
        self.fingerprint = self._examples.fingerprint
        candidates = np.flatnonzero(np.isin(self._examples.sizes, sizes))
        if not len(candidates):
            raise InputError(
                f"{path}: none of its instances has a size that n asks for; they have "
                f"{self._examples.sizes.min()} to {self._examples.sizes.max()} elements"
            )
        valid = draw_held_out(candidates, valid_share, max_valid, seed)
        self._drawn = np.setdiff1d(candidates, valid)  # the indices of the examples to train on
        if not len(self._drawn):
            count = f"{len(valid)} example{'s' * (len(valid) != 1)}"
            raise InputError(f"{path}: {count}, all kept to validate on; valid_share 0 keeps none")
        self.held_out = [self._examples.example(index, task) for index in valid]
        self._shuffled = (0, self._shuffle(0))  # an epoch and its batches

    @property
    def batches_per_epoch(self) -> int:
        """The number of batches in which each example comes once."""
        return -(-len(self._drawn) // self.batch_size)

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> Batch:
        """See `BatchStream`. A part without rows becomes one example with no token to learn."""
        epoch, position = divmod(k, self.batches_per_epoch)
        if self._shuffled[0] != epoch:
            self._shuffled = (epoch, self._shuffle(epoch))
        indices = self._shuffled[1][position]
        rng = np.random.default_rng([self.seed, FILE_TRANSFORMS, k])
        instances: list[Floats] = []
        answers: list[Indices] = []
        for group in np.split(indices, np.flatnonzero(np.diff(self._examples.sizes[indices])) + 1):
            inputs, outputs = self._examples.of_one_size(group)
            scaled = self.task.normalize(inputs)
            transformed = self.transform(rng, self.task, scaled, outputs)
            inputs, outputs = canonicalize(self.task, *transformed)
            instances += list(inputs)
            answers += outputs.rows()
        rows = rows_of_rank(len(indices), rank, world_size)
        if rows.start < rows.stop:
            return pad_batch(instances[rows], answers[rows], self.task)
        nothing = pad_batch(instances[:1], answers[:1], self.task)
        return nothing._replace(target_lengths=torch.zeros(1, dtype=torch.int64))

    def _shuffle(self, epoch: int) -> list[Indices]:
        """The indices of the examples in every batch of an epoch."""
        rng = np.random.default_rng([self.seed, FILE_ORDER, epoch])
        return shuffled_batches(self._drawn, self._examples.sizes, self.batch_size, rng)
