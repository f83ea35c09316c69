"""An endless stream of a file's examples, each once in an epoch."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch

from ptrnet.data.batches import pad_batch
from ptrnet.data.streams.memmap import packed
from ptrnet.data.streams.prefetch import prefetch
from ptrnet.data.streams.ranks import rows_of
from ptrnet.data.streams.split import held_out
from ptrnet.data.symmetries import Transform, canonicalize, identity
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, Floats, Indices

_ORDER, _CHANGES = 3, 4  # beside the streams of fresh examples


class FileStream:
    """Batch k is a pure function of `(file, seed, k)`: a resumed run sees the same batches.

    In every epoch the examples are shuffled, put in the order of their sizes, and cut into
    batches, which are shuffled again. So each example comes once, and nearly all batches have
    one size; only the last cut of an epoch may be short.

    Args:
        name: of the file; see `ptrnet.data.streams.memmap`.
        task: what its examples are of.
        sizes: the numbers of elements that are wanted; other examples are left out.
        batch_size: examples in a batch, B.
        seed: of the orders.
        first: the number of the first batch that iteration gives.
        ahead: batches kept ready by the producing thread.
        change: what is done to examples each time that they are drawn.
        valid_share: of the examples that is never drawn, but kept in `held_out`.
        most_valid: examples that this may be.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        sizes: Sequence[int],
        batch_size: int,
        seed: int,
        first: int = 0,
        ahead: int = 4,
        change: Transform = identity,
        valid_share: float = 0.0,
        most_valid: int = 0,
    ) -> None:
        self.task, self.batch_size, self.seed = task, batch_size, seed
        self.first, self.ahead, self.change = first, ahead, change
        self._file = packed(name, task)
        there = self._file.sizes
        candidates = np.flatnonzero(np.isin(there, sizes))
        if not len(candidates):
            raise InputError(
                f"{name}: none of its instances has a size that n asks for; they have "
                f"{there.min()} to {there.max()} elements"
            )
        left = held_out(candidates, valid_share, most_valid, seed)
        self._used = np.setdiff1d(candidates, left)
        if not len(self._used):
            count = f"{len(left)} example{'s' * (len(left) != 1)}"
            raise InputError(
                f"{name}: {count}, all kept to validate on; --valid-share 0 keeps none"
            )
        self.held_out = [self._file.example(number, task) for number in left]
        self._shuffled = (0, self._shuffle(0))

    @property
    def key(self) -> str:
        """What the file is: another where it has changed."""
        return self._file.key

    @property
    def epoch(self) -> int:
        """The number of batches in an epoch."""
        return -(-len(self._used) // self.batch_size)

    def batch(self, k: int, rank: int = 0, ranks: int = 1) -> Batch:
        """Batch number k, or the part of it that process `rank` of `ranks` trains on.

        A part without rows is one example that has no token to learn.
        """
        epoch, place = divmod(k, self.epoch)
        if self._shuffled[0] != epoch:
            self._shuffled = (epoch, self._shuffle(epoch))
        chosen = self._shuffled[1][place]
        rng = np.random.default_rng([self.seed, _CHANGES, k])
        instances: list[Floats] = []
        answers: list[Indices] = []
        for part in np.split(chosen, np.flatnonzero(np.diff(self._file.sizes[chosen])) + 1):
            inputs, given = self._file.of_one_size(part)
            seen = self.task.normalize(inputs)
            inputs, given = canonicalize(self.task, *self.change(rng, self.task, seen, given))
            instances += list(inputs)
            answers += given.rows()
        rows = rows_of(len(chosen), rank, ranks)
        if rows.start < rows.stop:
            return pad_batch(instances[rows], answers[rows], self.task)
        nothing = pad_batch(instances[:1], answers[:1], self.task)
        return nothing._replace(target_lengths=torch.zeros(1, dtype=torch.int64))

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batches(self, rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        """Batches from `first` on, without end; of each the part of one process."""
        return prefetch(partial(self.batch, rank=rank, ranks=ranks), self.first, self.ahead)

    def _shuffle(self, epoch: int) -> list[Indices]:
        """The examples of every batch of an epoch."""
        rng = np.random.default_rng([self.seed, _ORDER, epoch])
        order = rng.permutation(self._used)
        order = order[np.argsort(self._file.sizes[order], kind="stable")]
        cuts = rng.permutation(self.epoch) * self.batch_size
        return [order[cut : cut + self.batch_size] for cut in cuts]
