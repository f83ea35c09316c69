"""What a training draws its batches from: fresh examples, a dataset, or instances without answers.

Batch k of a stream is a function of its arguments and of k alone: a training that was stopped
continues with the batches that it would have drawn.
"""

import hashlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from ptrnet.data.batches import pad_batch, pad_instances
from ptrnet.data.dataset import Dataset
from ptrnet.data.random_streams import (
    CUTS,
    FILE_ORDER,
    FILE_TRANSFORMS,
    HELD_OUT,
    INSTANCE_ORDER,
    TRAIN,
)
from ptrnet.data.symmetries import Transform, canonicalize, identity, permute_elements
from ptrnet.errors import InputError
from ptrnet.masks import length_mask
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, CutBatch, Example, Floats, Indices, InstanceBatch

Item = TypeVar("Item")
AnyBatch = TypeVar("AnyBatch", Batch, CutBatch, InstanceBatch)


class BatchStream(ABC, Generic[AnyBatch]):
    """Numbered batches without end; batch k depends on nothing but the stream's arguments and k.

    So a resumed training sees the batches that it would have seen without the stop.

    Args:
        first: the number of the first batch that `batches` gives.
        num_prefetch: how many batches a thread makes ahead.
    """

    held_out: Sequence[Example] = ()  # examples that are never drawn, to validate on
    fingerprint: str = ""  # of the file of the examples: another once it has changed

    def __init__(self, first: int, num_prefetch: int) -> None:
        self.first, self.num_prefetch = first, num_prefetch

    @abstractmethod
    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> AnyBatch:
        """Batch number k, or the part of it that process `rank` of `world_size` trains on."""

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[AnyBatch]:
        """Batches from `first` on, without end; of each batch the part of one process."""
        batch = partial(self.batch, rank=rank, world_size=world_size)
        return prefetch(batch, self.first, self.num_prefetch)

    def __iter__(self) -> Iterator[AnyBatch]:
        return self.batches()


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
            torch.from_numpy(inputs if self.task.exact_inputs else inputs.astype(np.float32)),
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


class DatasetStream(BatchStream[Batch]):
    """The examples of a dataset; the same dataset, sizes, seed and so on give the same batch k.

    Each example comes once in every epoch; see `shuffled_batches`.

    Args:
        examples: with answers; in memory or on disk.
        task: of the examples.
        name: of the examples in error messages, such as the path of their file.
        sizes: the numbers of elements to train on; examples of other sizes are left out.
        batch_size: examples in a batch, B.
        seed: of the orders, of the held-out examples and of `transform`.
        first: the number of the first batch that iteration gives.
        num_prefetch: how many batches a thread makes ahead.
        transform: applied to examples each time that they are drawn.
        valid_share: the share of the examples that is never drawn, but stands in `held_out`.
        max_valid: the most examples that stand there.

    Raises:
        InputError: no instance has one of the sizes, or all of them are held out.
    """

    def __init__(
        self,
        examples: Dataset,
        task: Task,
        sizes: Sequence[int],
        batch_size: int,
        seed: int,
        first: int = 0,
        num_prefetch: int = 4,
        transform: Transform = identity,
        valid_share: float = 0.0,
        max_valid: int = 0,
        name: str = "examples",
    ) -> None:
        super().__init__(first, num_prefetch)
        self.task, self.batch_size, self.seed, self.transform = task, batch_size, seed, transform
        self._examples = examples
        self.fingerprint = examples.fingerprint
        candidates = np.flatnonzero(np.isin(self._examples.sizes, sizes))
        if not len(candidates):
            raise InputError(
                f"{name}: none of its instances has a size that n asks for; they have "
                f"{self._examples.sizes.min()} to {self._examples.sizes.max()} elements"
            )
        valid = draw_held_out(candidates, valid_share, max_valid, seed)
        self._drawn = np.setdiff1d(candidates, valid)  # the indices of the examples to train on
        if not len(self._drawn):
            count = f"{len(valid)} example{'s' * (len(valid) != 1)}"
            raise InputError(f"{name}: {count}, all kept to validate on; valid_share 0 keeps none")
        self.held_out = [self._examples[int(index)] for index in valid]
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
        in_order: list[Floats | None] = []
        for group in np.split(indices, np.flatnonzero(np.diff(self._examples.sizes[indices])) + 1):
            inputs, outputs = self._examples.rows_of_one_size(group)
            in_order += [self._examples.grades_in_order(int(row)) for row in group]
            scaled = self.task.normalize(inputs)
            transformed = self.transform(rng, self.task, scaled, outputs)
            inputs, outputs = canonicalize(self.task, *transformed)
            instances += list(inputs)
            answers += outputs.rows()
        rows = rows_of_rank(len(indices), rank, world_size)
        if rows.start < rows.stop:
            return pad_batch(instances[rows], answers[rows], self.task, in_order[rows])
        nothing = pad_batch(instances[:1], answers[:1], self.task, in_order[:1])
        return nothing._replace(target_lengths=torch.zeros(1, dtype=torch.int64))

    def _shuffle(self, epoch: int) -> list[Indices]:
        """The indices of the examples in every batch of an epoch."""
        rng = np.random.default_rng([self.seed, FILE_ORDER, epoch])
        return shuffled_batches(self._drawn, self._examples.sizes, self.batch_size, rng)


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
        tensor.repeat_interleave(num_cuts, 0) for tensor in batch[:4]
    )
    grades = None if batch.grades is None else batch.grades.repeat_interleave(num_cuts, 0)
    if task.circular:
        targets = _random_rotations(rng, targets, target_lengths - 1)
    longest = int(target_lengths.max())
    min_known = int(task.circular and longest > 1)
    num_known = int(rng.integers(min_known, max(longest, 1)))
    return CutBatch(inputs, lengths, targets, target_lengths, grades, num_known)


def _random_rotations(rng: np.random.Generator, targets: Tensor, lengths: Tensor) -> Tensor:
    """`(B, M)` circular sequences of `lengths` `(B,)`, begun at random and run either way."""
    starts = torch.from_numpy(rng.integers(lengths.clamp(min=1).numpy()))
    directions = torch.from_numpy(rng.integers(2, size=len(lengths)) * 2 - 1)
    steps = torch.arange(targets.shape[1]).expand_as(targets)
    rotated = starts[:, None] + directions[:, None] * steps
    mask = length_mask(lengths, targets.shape[1])
    return targets.gather(1, torch.where(mask, rotated % lengths.clamp(min=1)[:, None], steps))


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


def instance_batch(instances: Sequence[Floats], task: Task) -> InstanceBatch:
    """Instances `(n, d)` as one batch: normalized, and in the order that the model reads."""
    scaled = [task.normalize(instance) for instance in instances]
    orders = [task.element_order(inputs[None])[0] for inputs in scaled]
    read = [inputs[order] for inputs, order in zip(scaled, orders, strict=True)]
    ordered = [instance[order] for instance, order in zip(instances, orders, strict=True)]
    return InstanceBatch(*pad_instances(read, task.exact_inputs), ordered)


def prefetch(make: Callable[[int], Item], first: int, num_prefetch: int) -> Iterator[Item]:
    """`make(first)`, `make(first + 1)`, ... without end. What `make` raises is raised here.

    Args:
        make: makes the item of a number; called in a thread of its own.
        first: the number of the first item.
        num_prefetch: how many items are made ahead.
    """
    # Not a daemon thread: one that is inside torch when the interpreter ends aborts the process.
    thread = ThreadPoolExecutor(1, "examples")
    try:
        ready = deque(thread.submit(make, first + k) for k in range(num_prefetch))
        for k in count(first + num_prefetch):
            item = ready.popleft().result()
            ready.append(thread.submit(make, k))
            yield item
    finally:
        thread.shutdown(cancel_futures=True)


def rows_of_rank(count: int, rank: int, world_size: int) -> slice:
    """The rows of a batch of `count` examples that process `rank` of `world_size` trains on.

    Together the parts are the batch; they differ by one row at most, and may be empty.
    """
    return slice(count * rank // world_size, count * (rank + 1) // world_size)


def shuffled_batches(
    indices: Indices, sizes: Indices, batch_size: int, rng: np.random.Generator
) -> list[Indices]:
    """The indices of the examples in every batch of one epoch, each index once.

    They are shuffled, sorted by size, and cut into batches, whose order is shuffled, too. So in
    nearly all batches the instances have one size; one batch may have fewer examples.

    Args:
        indices: `(num_examples,)` of the examples to draw.
        sizes: the elements of every example, by its index.
        batch_size: examples in a batch, B.
        rng: draws both orders.
    """
    order = rng.permutation(indices)
    order = order[np.argsort(sizes[order], kind="stable")]
    starts = rng.permutation(-(-len(indices) // batch_size)) * batch_size
    return [order[start : start + batch_size] for start in starts]


def draw_held_out(candidates: Indices, share: float, max_count: int, seed: int) -> Indices:
    """The indices of the examples to validate on, in increasing order.

    Args:
        candidates: `(num_examples,)` indices of the examples that could be trained on.
        share: the share of them that is held out; at least one is, unless the share is 0.
        max_count: the most that are held out.
        seed: of the draw.
    """
    count = min(round(share * len(candidates)) or 1, len(candidates), max_count) if share else 0
    rng = np.random.default_rng([seed, HELD_OUT])
    return np.sort(rng.choice(candidates, count, replace=False))
