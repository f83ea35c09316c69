"""What a training draws its batches from: fresh examples, a dataset, or instances without answers.

Batch k of a stream is a function of the stream's arguments and of k alone. So a training that was
stopped continues with the batches that it would have drawn.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import ClassVar, Generic, TypeVar

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


@dataclass(eq=False, kw_only=True)
class BatchStream(ABC, Generic[AnyBatch]):
    """Numbered batches without end.

    Args:
        first: the number of the first batch that `batches` yields.
        num_prefetch: how many batches a thread makes ahead.
    """

    first: int = 0
    num_prefetch: int = 4
    # Examples to validate on, which are never drawn.
    held_out: Sequence[Example] = field(default=(), init=False)
    fingerprint: str = field(default="", init=False)  # of the data; changes if the data changes

    @abstractmethod
    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> AnyBatch:
        """Batch number k, or the part of it that process `rank` of `world_size` trains on."""

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[AnyBatch]:
        """Yield the batches from `first` on, without end; of each batch the part of one process."""
        batch = partial(self.batch, rank=rank, world_size=world_size)
        return prefetch(batch, self.first, self.num_prefetch)

    def __iter__(self) -> Iterator[AnyBatch]:
        return self.batches()


@dataclass(eq=False)
class FreshStream(BatchStream[AnyBatch]):
    """Instances that the task draws. All instances of a batch have one size.

    Args:
        task: draws the instances.
        sizes: the numbers of elements to draw from, uniformly.
        batch_size: instances in a batch, B.
        seed: of the stream.
        split: `TRAIN` or `VALID`; the two have no instance in common.
    """

    task: Task
    sizes: Sequence[int]
    batch_size: int
    seed: int
    split: int = TRAIN

    def draw(self, number: int, rank: int, world_size: int) -> Floats:
        """Return the `(B, n, d)` instances of a batch that one process trains on."""
        rng = np.random.default_rng([self.seed, self.split, number])
        n = int(rng.choice(np.asarray(self.sizes)))
        inputs = self.task.sample(rng, self.batch_size, n)
        return inputs[rows_of_rank(self.batch_size, rank, world_size)]


@dataclass(eq=False)
class ExampleStream(FreshStream[Batch]):
    """Fresh instances with the answers of a labeller.

    Args: those of `FreshStream`, and
        labeller: the algorithm that answers, one of `task.labellers`; the first if None.
        num_batches: how many different batches there are. In each epoch all of them come once, in
            an order of its own. If None, every batch is new.
    """

    labeller: str | None = None
    num_batches: int | None = None

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> Batch:
        """See `BatchStream`. Rows of other processes are drawn, but not labelled."""
        inputs = self.draw(self._number(k), rank, world_size)
        if self.task.order != "given":
            inputs = permute_elements(inputs, self.task.element_order(inputs))
        answers = self.task.label(inputs, self.labeller)
        return pad_batch(list(inputs), answers.rows(), self.task)

    def _number(self, k: int) -> int:
        """Return which of the `num_batches` batches comes at place k."""
        if self.num_batches is None:
            return k
        epoch, place = divmod(k, self.num_batches)
        # Four numbers, so that no random number is shared with a batch, whose generator has three.
        order = np.random.default_rng([self.seed, self.split, epoch, 1])
        return int(order.permutation(self.num_batches)[place])


@dataclass(eq=False)
class FreshInstances(FreshStream[InstanceBatch]):
    """Fresh instances without answers."""

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> InstanceBatch:
        """See `BatchStream`."""
        return instance_batch(list(self.draw(k, rank, world_size)), self.task)


@dataclass(eq=False)
class EpochStream(BatchStream[AnyBatch]):
    """Rows of a dataset; each row comes once in every epoch, see `shuffled_batches`.

    Args:
        examples: the dataset, in memory or on disk.
        task: of the examples.
        sizes: the numbers of elements to train on; rows of other sizes are left out.
        batch_size: rows in a batch, B.
        seed: of the orders and of the rows that are held out.
        valid_share: the share of the rows that is never drawn, but is in `held_out`.
        max_valid: the maximum number of rows in `held_out`.
        name: of the examples in error messages, such as the path of their file.

    Raises:
        InputError: no row has one of the sizes, or all of them are held out.
    """

    order: ClassVar[int]  # the random stream of the orders

    examples: Dataset
    task: Task
    sizes: Sequence[int]
    batch_size: int
    seed: int
    valid_share: float = 0.0
    max_valid: int = 0
    name: str = "examples"

    def __post_init__(self) -> None:
        row_sizes = self.examples.sizes
        candidates = np.flatnonzero(np.isin(row_sizes, self.sizes))
        if not len(candidates):
            raise InputError(
                f"{self.name}: none of its instances has a size that n asks for; they have "
                f"{row_sizes.min()} to {row_sizes.max()} elements"
            )
        valid = draw_held_out(candidates, self.valid_share, self.max_valid, self.seed)
        self._drawn = np.setdiff1d(candidates, valid)
        if not len(self._drawn):
            count = f"{len(valid)} example{'s' * (len(valid) != 1)}"
            raise InputError(
                f"{self.name}: {count}, all kept to validate on; valid_share 0 keeps none"
            )
        self.held_out = [self.examples[row] for row in valid.tolist()]
        self.fingerprint = self.examples.fingerprint
        self._shuffled = (-1, list[Indices]())  # an epoch, and the rows of each of its batches

    @property
    def batches_per_epoch(self) -> int:
        """The number of batches in which each row comes once."""
        return -(-len(self._drawn) // self.batch_size)

    def rows(self, k: int) -> Indices:
        """Return the rows of batch k."""
        epoch, place = divmod(k, self.batches_per_epoch)
        if self._shuffled[0] != epoch:
            rng = np.random.default_rng([self.seed, self.order, epoch])
            batches = shuffled_batches(self._drawn, self.examples.sizes, self.batch_size, rng)
            self._shuffled = (epoch, batches)
        return self._shuffled[1][place]


@dataclass(eq=False)
class DatasetStream(EpochStream[Batch]):
    """The examples of a dataset with answers.

    Args: those of `EpochStream`, and
        transform: changes examples each time that they are drawn.
    """

    order: ClassVar[int] = FILE_ORDER
    transform: Transform = identity

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> Batch:
        """See `BatchStream`. A part without rows becomes one example with no token to learn."""
        indices, sizes = self.rows(k), self.examples.sizes
        rng = np.random.default_rng([self.seed, FILE_TRANSFORMS, k])
        instances: list[Floats] = []
        answers: list[Indices] = []
        for group in np.split(indices, np.flatnonzero(np.diff(sizes[indices])) + 1):
            inputs, outputs = self.examples.rows_of_one_size(group)
            scaled = self.task.normalize(inputs)
            transformed = self.transform(rng, self.task, scaled, outputs)
            inputs, outputs = canonicalize(self.task, *transformed)
            instances += list(inputs)
            answers += outputs.rows()
        grades = [self.examples.grades_in_order(row) for row in indices.tolist()]
        rows = rows_of_rank(len(indices), rank, world_size)
        if rows.start < rows.stop:
            return pad_batch(instances[rows], answers[rows], self.task, grades[rows])
        nothing = pad_batch(instances[:1], answers[:1], self.task, grades[:1])
        return nothing._replace(target_lengths=torch.zeros(1, dtype=torch.int64))


@dataclass(eq=False)
class KnownInstances(EpochStream[InstanceBatch]):
    """The instances of a dataset, without answers."""

    order: ClassVar[int] = INSTANCE_ORDER

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> InstanceBatch:
        """See `BatchStream`. A part without rows becomes one instance."""
        indices = self.rows(k)
        part = indices[rows_of_rank(len(indices), rank, world_size)]
        rows = part if len(part) else indices[:1]
        return instance_batch([self.examples[row].inputs for row in rows.tolist()], self.task)


@dataclass(eq=False)
class CutStream(BatchStream[CutBatch]):
    """The batches of another stream, with each example several times and its answer cut.

    Args:
        stream: of examples. `first` and `num_prefetch` are its own.
        task: of the examples.
        num_cuts: of each answer. All answers of a batch are cut after the same number of tokens.
        seed: of the cuts.
    """

    stream: BatchStream[Batch]
    task: Task
    num_cuts: int
    seed: int

    def __post_init__(self) -> None:
        self.first, self.num_prefetch = self.stream.first, self.stream.num_prefetch
        self.held_out = self.stream.held_out
        self.fingerprint = self.stream.fingerprint

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> CutBatch:
        """See `BatchStream`. Each process draws cuts of its own."""
        rng = np.random.default_rng([self.seed, CUTS, k, rank])
        return cut_batch(rng, self.task, self.stream.batch(k, rank, world_size), self.num_cuts)


def cut_batch(rng: np.random.Generator, task: Task, batch: Batch, num_cuts: int) -> CutBatch:
    """Return every example `num_cuts` times, cut after a number of tokens that is drawn uniformly.

    If any first element and either direction of an answer are right (`Task.circular`), these are
    drawn too, and the first token is always known.
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
    """Rotate circular sequences `(B, M)` of `lengths` `(B,)` at random, and reverse some."""
    starts = torch.from_numpy(rng.integers(lengths.clamp(min=1).numpy()))
    directions = torch.from_numpy(rng.integers(2, size=len(lengths)) * 2 - 1)
    steps = torch.arange(targets.shape[1]).expand_as(targets)
    rotated = starts[:, None] + directions[:, None] * steps
    mask = length_mask(lengths, targets.shape[1])
    return targets.gather(1, torch.where(mask, rotated % lengths.clamp(min=1)[:, None], steps))


def instance_batch(instances: Sequence[Floats], task: Task) -> InstanceBatch:
    """Return instances `(n, d)` as one batch: normalized, in the order that the model reads."""
    scaled = [task.normalize(instance) for instance in instances]
    orders = [task.element_order(inputs[None])[0] for inputs in scaled]
    read = [inputs[order] for inputs, order in zip(scaled, orders, strict=True)]
    ordered = [instance[order] for instance, order in zip(instances, orders, strict=True)]
    return InstanceBatch(*pad_instances(read, task.exact_inputs), ordered)


def prefetch(make: Callable[[int], Item], first: int, num_prefetch: int) -> Iterator[Item]:
    """Yield `make(first)`, `make(first + 1)`, ... without end. What `make` raises is raised here.

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
    """Return the rows of a batch of `count` examples that process `rank` of `world_size` trains on.

    The parts differ by at most one row, and may be empty.
    """
    return slice(count * rank // world_size, count * (rank + 1) // world_size)


def shuffled_batches(
    indices: Indices, sizes: Indices, batch_size: int, rng: np.random.Generator
) -> list[Indices]:
    """Return the indices of the examples in every batch of one epoch, each index once.

    They are shuffled, sorted by size, and cut into batches, whose order is shuffled, too. So the
    instances of nearly all batches have one size. One batch may have fewer examples.

    Args:
        indices: `(num_examples,)` of the examples to draw.
        sizes: the number of elements of every example, by its index.
        batch_size: examples in a batch, B.
        rng: draws both orders.
    """
    order = rng.permutation(indices)
    order = order[np.argsort(sizes[order], kind="stable")]
    starts = rng.permutation(-(-len(indices) // batch_size)) * batch_size
    return [order[start : start + batch_size] for start in starts]


def draw_held_out(candidates: Indices, share: float, max_count: int, seed: int) -> Indices:
    """Return the indices of the examples to validate on, in increasing order.

    Args:
        candidates: `(num_examples,)` indices of the examples that could be trained on.
        share: the share of them that is held out; at least one is, unless the share is 0.
        max_count: the maximum number that is held out.
        seed: of the draw.
    """
    count = min(round(share * len(candidates)) or 1, len(candidates), max_count) if share else 0
    rng = np.random.default_rng([seed, HELD_OUT])
    return np.sort(rng.choice(candidates, count, replace=False))
