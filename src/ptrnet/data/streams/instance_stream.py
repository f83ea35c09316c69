"""Endless streams of instances without answers: fresh ones, or those of a list."""

import hashlib
from collections.abc import Sequence

import numpy as np

from ptrnet.data.batches import pad_instances
from ptrnet.data.random_streams import INSTANCE_ORDER, TRAIN
from ptrnet.data.streams.batch_stream import BatchStream
from ptrnet.data.streams.epochs import shuffled_batches
from ptrnet.data.streams.ranks import rows_of_rank
from ptrnet.data.streams.split import draw_held_out
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, InstanceBatch


def instance_batch(instances: Sequence[Floats], task: Task) -> InstanceBatch:
    """Instances `(n, d)` as one batch: normalized, and in the order that the model reads."""
    scaled = [task.normalize(instance) for instance in instances]
    orders = [task.element_order(inputs[None])[0] for inputs in scaled]
    read = [inputs[order] for inputs, order in zip(scaled, orders, strict=True)]
    ordered = [instance[order] for instance, order in zip(instances, orders, strict=True)]
    return InstanceBatch(*pad_instances(read), ordered)


class FreshInstances(BatchStream[InstanceBatch]):
    """Instances that the task draws; the same task, sizes, seed and so on give the same batch k.

    All instances of a batch have one size, drawn uniformly from `sizes`.

    Args:
        task: draws the instances.
        sizes: the numbers of elements to draw from.
        batch_size: instances in a batch, B.
        seed: of the stream.
        split: `TRAIN` or `VALID`, see `ptrnet.data.streams.example_stream`.
        first: the number of the first batch that iteration gives.
        num_prefetch: how many batches a thread makes ahead.
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
    ) -> None:
        super().__init__(first, num_prefetch)
        self.task, self.sizes, self.batch_size = task, np.asarray(sizes), batch_size
        self.seed, self.split = seed, split

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> InstanceBatch:
        """See `BatchStream`."""
        rng = np.random.default_rng([self.seed, self.split, k])
        n = int(rng.choice(self.sizes))
        inputs = self.task.sample(rng, self.batch_size, n)
        rows = rows_of_rank(self.batch_size, rank, world_size)
        return instance_batch(list(inputs[rows]), self.task)


class KnownInstances(BatchStream[InstanceBatch]):
    """The instances of a list, each once in an epoch; see `shuffled_batches`.

    Args:
        instances: `(n, d)` each.
        task: of the instances.
        sizes: the numbers of elements to train on; instances of other sizes are left out.
        batch_size: instances in a batch, B.
        seed: of the orders and of the instances that are held out.
        first: the number of the first batch that iteration gives.
        num_prefetch: how many batches a thread makes ahead.
        valid_share: the share of the instances that is never drawn, but stands in `held_out`.
        max_valid: the most instances that stand there.

    Raises:
        InputError: no instance has one of the sizes, or all of them are held out.
    """

    def __init__(
        self,
        instances: Sequence[Floats],
        task: Task,
        sizes: Sequence[int],
        batch_size: int,
        seed: int,
        first: int = 0,
        num_prefetch: int = 4,
        valid_share: float = 0.0,
        max_valid: int = 0,
    ) -> None:
        super().__init__(first, num_prefetch)
        self.instances, self.task, self.batch_size, self.seed = instances, task, batch_size, seed
        self._sizes = np.array([len(instance) for instance in instances])
        candidates = np.flatnonzero(np.isin(self._sizes, sizes))
        if not len(candidates):
            raise InputError("instances: none has a size that n asks for")
        valid = draw_held_out(candidates, valid_share, max_valid, seed)
        self._drawn = np.setdiff1d(candidates, valid)
        if not len(self._drawn):
            raise InputError("instances: all are kept to validate on; valid_share=0 keeps none")
        self.held_out = [Example(instances[index]) for index in valid]
        self.fingerprint = f"{task.name}-{_fingerprint(instances)}"
        self._shuffled = (0, self._shuffle(0))  # an epoch and its batches

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> InstanceBatch:
        """See `BatchStream`. A part without rows becomes one instance."""
        epoch, position = divmod(k, -(-len(self._drawn) // self.batch_size))
        if self._shuffled[0] != epoch:
            self._shuffled = (epoch, self._shuffle(epoch))
        indices = self._shuffled[1][position]
        rows = indices[rows_of_rank(len(indices), rank, world_size)]
        rows = rows if len(rows) else indices[:1]
        return instance_batch([self.instances[index] for index in rows], self.task)

    def _shuffle(self, epoch: int) -> list[np.ndarray]:
        rng = np.random.default_rng([self.seed, INSTANCE_ORDER, epoch])
        return shuffled_batches(self._drawn, self._sizes, self.batch_size, rng)


def _fingerprint(instances: Sequence[Floats]) -> str:
    """A hash of the shapes and numbers of all instances."""
    content = hashlib.blake2b(digest_size=16)
    for instance in instances:
        content.update(
            np.array(instance.shape).tobytes() + np.ascontiguousarray(instance).tobytes()
        )
    return content.hexdigest()
