"""Streams of training batches: random examples, a dataset, or instances without answers.

Batch k of a stream depends only on k and on the arguments of the stream. So a resumed training
continues with the batches that an uninterrupted training would have drawn.
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

from ptrnet import labellers
from ptrnet.data.batches import pad_batch, pad_instances
from ptrnet.data.random_streams import (
    CUTS,
    FILE_ORDER,
    FILE_TRANSFORMS,
    HELD_OUT,
    INSTANCE_ORDER,
    TRAIN,
)
from ptrnet.data.symmetries import augment, canonicalize, permute_elements
from ptrnet.errors import InputError
from ptrnet.geometry.points import reading_order
from ptrnet.masks import length_mask
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, CutBatch, Dataset, Example, Floats, Indices, InstanceBatch

Item = TypeVar("Item")
AnyBatch = TypeVar("AnyBatch", Batch, CutBatch, InstanceBatch)


@dataclass(eq=False, kw_only=True)
class BatchStream(ABC, Generic[AnyBatch]):
    """An endless sequence of numbered batches.

    Args:
        first: the number of the first batch that `batches` yields.
        num_prefetch: how many batches a background thread prepares ahead.
    """

    first: int = 0
    num_prefetch: int = 4
    # Examples for validation, in parts: a part for each network, or one part for all networks.
    held_out: Sequence[Sequence[Example]] = field(default=(), init=False)
    # Identifies the data. A training is not resumed with other data.
    fingerprint: str = field(default="", init=False)

    @abstractmethod
    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> AnyBatch:
        """Return the rows of batch k that process `rank` of `world_size` trains on."""

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[AnyBatch]:
        """Yield the batches from `first` on, without end. A process gets its part of each batch."""
        batch = partial(self.batch, rank=rank, world_size=world_size)
        return prefetch(batch, self.first, self.num_prefetch)

    def __iter__(self) -> Iterator[AnyBatch]:
        return self.batches()


@dataclass(eq=False)
class FreshStream(BatchStream[AnyBatch]):
    """Random instances, drawn by the task. All instances of a batch have the same size.

    Args:
        task: draws the instances.
        sizes: the possible sizes of a batch's instances, all equally likely.
        batch_size: the number of instances in a batch, B.
        seed: the seed of the stream.
        split: `TRAIN` or `VALID`, which draw different instances.
    """

    task: Task
    sizes: Sequence[int]
    batch_size: int
    seed: int
    split: int = TRAIN

    def draw(self, number: int, rank: int, world_size: int) -> Floats:
        """Draw the instances `(B, n, d)` of a batch. Return the instances of one process."""
        rng = np.random.default_rng([self.seed, self.split, number])
        n = int(rng.choice(np.asarray(self.sizes)))
        inputs = self.task.sample(rng, self.batch_size, n)
        return inputs[rows_of_rank(self.batch_size, rank, world_size)]


@dataclass(eq=False)
class ExampleStream(FreshStream[Batch]):
    """Random instances with answers that an algorithm computes.

    Args: those of `FreshStream`, and
        labeller: the algorithm, one of `task.facts.labellers`; by default the first labeller.
        num_batches: the number of different batches. Each epoch has every batch once, in a new
            random order. If None, no batch is repeated.
    """

    labeller: str | None = None
    num_batches: int | None = None

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> Batch:
        """See `BatchStream`. The rows of other processes are drawn, but not labelled."""
        drawn = self.draw(self._number(k), rank, world_size)
        inputs = self.task.normalize(drawn)
        if self.task.order != "given":
            order = reading_order(inputs, self.task.order)
            drawn, inputs = permute_elements(drawn, order), permute_elements(inputs, order)
        answers = labellers.label(self.task, drawn, self.labeller)
        return pad_batch(list(inputs), answers, self.task)

    def _number(self, k: int) -> int:
        """Return the index of batch k among the `num_batches` different batches.

        If no batch is repeated, return k.
        """
        if self.num_batches is None:
            return k
        epoch, place = divmod(k, self.num_batches)
        # The seeds of the batches' generators have three numbers. A seed of four numbers makes
        # this generator independent of the batches' generators.
        order = np.random.default_rng([self.seed, self.split, epoch, 1])
        return int(order.permutation(self.num_batches)[place])


@dataclass(eq=False)
class FreshInstances(FreshStream[InstanceBatch]):
    """Random instances without answers."""

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> InstanceBatch:
        """See `BatchStream`."""
        return instance_batch(list(self.draw(k, rank, world_size)), self.task)


@dataclass(eq=False)
class EpochStream(BatchStream[AnyBatch]):
    """The rows of a dataset. Each epoch has every row once; see `shuffled_batches`.

    Args:
        examples: the dataset, in memory or on disk.
        task: the task of the examples.
        sizes: the sizes to train on; rows of other sizes, or of weight 0, are left out.
        batch_size: the number of rows in a batch, B.
        seed: decides the order of the rows, and which rows are held out.
        valid_share: the share of the rows that each network holds out for validation. If rows have
            groups, a network holds out whole groups, so that its share is only about as large.
        max_valid: the maximum number of rows that a network holds out.
        num_parts: the number of networks. Each network holds out a share of the rows, and no two
            shares have a row in common. If there is only one network, no batch has the rows that
            the network holds out. If there are several networks, batches include all rows.
            `Batch.held_out_by` says which network holds out a row. All other networks learn from
            this row.
        name: the name of the examples in error messages, such as the path of their file.

    Raises:
        InputError: no row has one of the sizes, or a network holds out all rows.
    """

    order: ClassVar[int]  # which of the `random_streams` orders the rows

    examples: Dataset
    task: Task
    sizes: Sequence[int]
    batch_size: int
    seed: int
    valid_share: float = 0.0
    max_valid: int = 0
    num_parts: int = 1
    name: str = "examples"

    def __post_init__(self) -> None:
        row_sizes, weights = self.examples.sizes, self.examples.weights
        is_used = np.isin(row_sizes, self.sizes)
        candidates = np.flatnonzero(is_used if weights is None else is_used & (weights > 0))
        if not len(candidates):
            raise InputError(
                f"{self.name}: expected instances of n = {self.sizes} elements, got "
                f"{row_sizes.min()} to {row_sizes.max()}"
            )
        groups = self.examples.groups
        parts = draw_held_out(
            candidates, self.valid_share, self.max_valid, self.seed, self.num_parts, groups
        )
        if len(candidates) == max(map(len, parts), default=0):
            count = f"{len(candidates)} example{'s' * (len(candidates) != 1)}"
            of_group = " of one group" if groups is not None else ""
            raise InputError(
                f"{self.name}: {count}{of_group}, all held out for validation; set valid_share to "
                f"0, or add examples{of_group.replace('one', 'another')}"
            )
        self._drawn, self._held_out_by = candidates, None
        if len(parts) == 1:
            self._drawn = np.setdiff1d(candidates, parts[0])
        elif parts:
            self._held_out_by = np.full(len(self.examples), -1)
            for k, part in enumerate(parts):
                self._held_out_by[part] = k
        self.held_out = [[self.examples[row] for row in part.tolist()] for part in parts]
        self.fingerprint = self.examples.fingerprint
        self._shuffled = (-1, list[Indices]())  # epoch of the last shuffle, and its batches

    def learned_by(self, network: int, max_count: int) -> list[Example]:
        """Return at most `max_count` examples, evenly spaced, that a network learns from."""
        rows = self._drawn
        if self._held_out_by is not None:
            rows = rows[self._held_out_by[rows] != network]
        step = -(-len(rows) // max_count)
        return [self.examples[row] for row in rows[::step].tolist()]

    @property
    def batches_per_epoch(self) -> int:
        """The number of batches in an epoch."""
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
    """The examples of a dataset, with answers.

    Args: those of `EpochStream`, and
        is_augmented: whether to change the examples of each batch at random; see `augment`.
    """

    order: ClassVar[int] = FILE_ORDER
    is_augmented: bool = False

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> Batch:
        """See `BatchStream`. A process without rows gets one example without target tokens.

        Every process has to run every training step, because the gradients of all processes are
        averaged.
        """
        indices, sizes = self.rows(k), self.examples.sizes
        rng = np.random.default_rng([self.seed, FILE_TRANSFORMS, k])
        instances: list[Floats] = []
        answers: list[Indices] = []
        outputs: Sequence[Indices]
        for group in np.split(indices, np.flatnonzero(np.diff(sizes[indices])) + 1):
            inputs, outputs = self.examples.rows_of_one_size(group)
            inputs = self.task.normalize(inputs)
            if self.is_augmented:
                inputs, outputs = augment(rng, self.task, inputs, outputs)
            inputs, outputs = canonicalize(self.task, inputs, outputs)
            instances += list(inputs)
            answers += list(outputs)
        grades = [
            None if example.grades is None else example.grades[example.outputs]
            for example in map(self.examples.__getitem__, indices.tolist())
        ]
        rows = rows_of_rank(len(indices), rank, world_size)
        if rows.start < rows.stop:
            batch = pad_batch(instances[rows], answers[rows], self.task, grades[rows])
            held_out_by, weights = self._held_out_by, self.examples.weights
            if held_out_by is not None:
                batch = batch._replace(held_out_by=torch.from_numpy(held_out_by[indices[rows]]))
            if weights is not None:
                batch = batch._replace(weights=torch.from_numpy(weights[indices[rows]]).float())
            return batch
        nothing = pad_batch(instances[:1], answers[:1], self.task, grades[:1])
        return nothing._replace(target_lengths=torch.zeros(1, dtype=torch.int64))


@dataclass(eq=False)
class KnownInstances(EpochStream[InstanceBatch]):
    """The instances of a dataset, without their answers."""

    order: ClassVar[int] = INSTANCE_ORDER

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> InstanceBatch:
        """See `BatchStream`. A process without rows gets the batch's first instance."""
        indices = self.rows(k)
        part = indices[rows_of_rank(len(indices), rank, world_size)]
        rows = part if len(part) else indices[:1]
        return instance_batch([self.examples[row].inputs for row in rows.tolist()], self.task)


@dataclass(eq=False)
class CutStream(BatchStream[CutBatch]):
    """The batches of another stream, with each answer cut into a known and an unknown part.

    Args:
        stream: the other stream, which also sets `first` and `num_prefetch`.
        task: the task of the examples.
        num_cuts: the number of copies of each closed tour; see `cut_batch`.
        seed: the seed of the cuts.
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
        """See `BatchStream`. Each process draws its own cuts."""
        rng = np.random.default_rng([self.seed, CUTS, k, rank])
        return cut_batch(rng, self.task, self.stream.batch(k, rank, world_size), self.num_cuts)


def cut_batch(rng: np.random.Generator, task: Task, batch: Batch, num_cuts: int) -> CutBatch:
    """Return a batch whose answers are all cut after the same random number of known tokens.

    If answers are closed tours (`Facts.circular`), any element may be first and both directions are
    correct. Then the returned batch has `num_cuts` copies of each example. The first element and
    the direction of each copy are random, and at least the first token is known. Examples of other
    tasks are not repeated, because all copies would be equal.
    """
    num_cuts = num_cuts if task.facts.circular else 1
    inputs, lengths, targets, target_lengths = (
        tensor.repeat_interleave(num_cuts, 0) for tensor in batch[:4]
    )
    grades, held_out_by, weights = (
        None if tensor is None else tensor.repeat_interleave(num_cuts, 0) for tensor in batch[4:]
    )
    if task.facts.circular:
        targets = _random_rotations(rng, targets, target_lengths - 1)
    longest = int(target_lengths.max())
    min_known = int(task.facts.circular and longest > 1)
    num_known = int(rng.integers(min_known, max(longest, 1)))
    return CutBatch(
        inputs, lengths, targets, target_lengths, grades, num_known, held_out_by, weights
    )


def _random_rotations(rng: np.random.Generator, targets: Tensor, lengths: Tensor) -> Tensor:
    """Rotate circular sequences `(B, M)` at random, and reverse about half of them.

    `lengths` `(B,)` are the lengths without END. END and padding stay in place.
    """
    starts = torch.from_numpy(rng.integers(lengths.clamp(min=1).numpy()))
    directions = torch.from_numpy(rng.integers(2, size=len(lengths)) * 2 - 1)
    steps = torch.arange(targets.shape[1]).expand_as(targets)
    rotated = starts[:, None] + directions[:, None] * steps
    mask = length_mask(lengths, targets.shape[1])
    return targets.gather(1, torch.where(mask, rotated % lengths.clamp(min=1)[:, None], steps))


def instance_batch(instances: Sequence[Floats], task: Task) -> InstanceBatch:
    """Return instances `(n, d)` as a batch: normalized inputs, and the instances as given.

    In both, the elements are in the order that the model reads.
    """
    scaled = [task.normalize(instance) for instance in instances]
    orders = [reading_order(inputs[None], task.order)[0] for inputs in scaled]
    read = [inputs[order] for inputs, order in zip(scaled, orders, strict=True)]
    ordered = [instance[order] for instance, order in zip(instances, orders, strict=True)]
    return InstanceBatch(*pad_instances(read, task.facts.exact_inputs), ordered)


def prefetch(make: Callable[[int], Item], first: int, num_prefetch: int) -> Iterator[Item]:
    """Yield `make(first)`, `make(first + 1)`, ... without end.

    Errors of `make` are raised to the caller.

    Args:
        make: returns item k, given the number k; called in a background thread.
        first: the number of the first item.
        num_prefetch: how many items the thread prepares ahead.

    Examples:
        >>> squares = prefetch(lambda k: k * k, first=3, num_prefetch=2)
        >>> next(squares), next(squares)
        (9, 16)
    """
    # Do not use a daemon thread: a daemon thread that is inside torch at exit aborts the process.
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
    """Return the rows that process `rank` of `world_size` trains on, as a slice of the batch.

    The batch has `count` rows. The shares of any two processes differ by at most one row. If there
    are fewer rows than processes, some processes get no row.

    Examples:
        >>> [rows_of_rank(5, rank, 2) for rank in (0, 1)]
        [slice(0, 2, None), slice(2, 5, None)]
    """
    return slice(count * rank // world_size, count * (rank + 1) // world_size)


def shuffled_batches(
    indices: Indices, sizes: Indices, batch_size: int, rng: np.random.Generator
) -> list[Indices]:
    """Split the examples into the batches of one epoch. Return the indices of each batch.

    We shuffle the examples, sort them by size, cut them into batches, and shuffle the batches.
    Instances of equal size need no padding, and only batches at the border between two sizes have
    instances of different sizes. One batch may have fewer than `batch_size` examples.

    Args:
        indices: `(num_examples,)`, the examples to draw.
        sizes: the number of elements of each example, by its index.
        batch_size: the number of examples in a batch, B.
        rng: draws the order of the examples, and the order of the batches.
    """
    order = rng.permutation(indices)
    order = order[np.argsort(sizes[order], kind="stable")]
    starts = rng.permutation(-(-len(indices) // batch_size)) * batch_size
    return [order[start : start + batch_size] for start in starts]


def draw_held_out(
    candidates: Indices,
    share: float,
    max_count: int,
    seed: int,
    num_parts: int = 1,
    groups: Indices | None = None,
) -> list[Indices]:
    """Draw the examples for validation. Return the indices of each part, in increasing order.

    If the share or the maximum is 0, there is no part. A single part has at least one example.
    If there are several parts and fewer examples (or groups) than parts, some parts are empty.

    Args:
        candidates: `(num_examples,)` indices of the examples to draw from.
        share: the share of the candidates in each part.
        max_count: the maximum number of examples in a part.
        seed: the seed of the draw.
        num_parts: the number of parts.
        groups: the code of each example's group, by the example's index. All examples of a group
            are in the same part, or in none. A part then has whole groups, until it has as many
            examples as without groups. Its last group may exceed this number, and so may its first
            group, if all smaller groups are in other parts.
    """
    if not share or not max_count:
        return []
    size = min(round(share * len(candidates)) or 1, max_count)
    rng = np.random.default_rng([seed, HELD_OUT])
    if groups is None:
        drawn = rng.choice(candidates, min(num_parts * size, len(candidates)), replace=False)
        return [np.sort(drawn[k::num_parts]) for k in range(num_parts)]
    _, firsts, numbers = np.unique(groups[candidates], return_index=True, return_inverse=True)
    sizes = np.bincount(numbers)
    # The order depends on where groups begin, not on their codes. Large groups come last, so that a
    # network rarely holds out most of the examples.
    order = rng.permutation(np.argsort(firsts))
    order = order[np.argsort(np.maximum(sizes[order], size), kind="stable")]
    part_of_group, counts = np.full(len(sizes), -1), np.zeros(num_parts, np.int64)
    for group in order.tolist():
        k = int(counts.argmin())
        if counts[k] < size and (sizes[group] <= size or not counts[k]):
            part_of_group[group] = k
            counts[k] += sizes[group]
    return [np.sort(candidates[part_of_group[numbers] == k]) for k in range(num_parts)]
