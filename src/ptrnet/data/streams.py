"""Streams of training batches: random examples, a dataset, or instances without answers.

Batch k of a stream depends only on k and on the arguments of the stream. So a resumed training
continues with the batches that an uninterrupted training would have drawn.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from ptrnet import labellers
from ptrnet.data.batches import Batch, batch_of, permute_elements
from ptrnet.errors import InputError
from ptrnet.geometry import model_order
from ptrnet.masks import length_mask
from ptrnet.parallel import ordered_map
from ptrnet.tasks.base import Task
from ptrnet.types import (
    CUTS,
    FILE_ORDER,
    FILE_TRANSFORMS,
    HELD_OUT,
    INSTANCE_ORDER,
    TRAIN,
    Dataset,
    Indices,
)

Item = TypeVar("Item")

# The batches of pages that a thread makes before processes do, and the number of the processes.
FROM_THREAD, PROCESSES = 200, 2


@dataclass(eq=False)
class BatchStream(ABC):
    """An endless sequence of numbered batches."""

    task: Task
    sizes: Sequence[int]
    batch_size: int  # the number of instances in a batch, B
    seed: int
    # The number of the first batch that `batches` yields.
    first: int = field(default=0, kw_only=True)
    # How many batches a background thread prepares ahead.
    num_prefetch: int = field(default=4, kw_only=True)
    # Whether batches have answers, computed by the task or taken from the dataset.
    has_answers: bool = field(default=True, kw_only=True)
    # The number of copies of each closed tour, cut at random; see `cut_batch`. 0: whole answers.
    # Each process draws its own cuts.
    num_cuts: int = field(default=0, kw_only=True)
    # Examples for validation, in parts: a part for each network, or one part for all networks.
    held_out: Sequence[Dataset] = field(default=(), init=False)
    # Identifies the data. A training is not resumed with other data.
    fingerprint: str = field(default="", init=False)

    @abstractmethod
    def whole_batch(self, k: int, rank: int, world_size: int) -> Batch:
        """Return the rows of batch k that process `rank` of `world_size` trains on, not cut."""

    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> Batch:
        """Return the rows of batch k that process `rank` of `world_size` trains on."""
        batch = self.whole_batch(k, rank, world_size)
        if not self.num_cuts:
            return batch
        rng = np.random.default_rng([self.seed, CUTS, k, rank])
        return cut_batch(rng, self.task, batch, self.num_cuts)

    def batches(self, rank: int = 0, world_size: int = 1) -> Generator[Batch]:
        """Yield the batches from `first` on, without end. A process gets its part of each batch."""
        batch = partial(self.batch, rank=rank, world_size=world_size)
        return prefetch(batch, self.first, self.num_prefetch)

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()


@dataclass(eq=False)
class FreshStream(BatchStream):
    """Random instances, drawn and answered by the task. All instances of a batch have one size.

    All `sizes` are equally likely.
    """

    split: int = TRAIN  # or VALID, which draws other instances
    labeller: str | None = None  # one of `task.facts.labellers`; by default the first one
    # The number of different batches. Each epoch has every batch once, in a new random order. If
    # None, no batch is repeated.
    num_batches: int | None = None

    def whole_batch(self, k: int, rank: int, world_size: int) -> Batch:
        """See `BatchStream`. The rows of other processes are drawn, but not labelled."""
        task, rng = self.task, np.random.default_rng([self.seed, self.split, self._number(k)])
        n = int(rng.choice(np.asarray(self.sizes)))
        own = rows_of_rank(self.batch_size, rank, world_size)
        drawn, answers = labellers.draw(task, rng, self.batch_size, n, self.labeller)
        drawn = drawn[own]
        if task.order != "given" and answers is None:
            # Answers are computed for the order that the model reads.
            drawn = permute_elements(drawn, model_order(task.normalize(drawn), task.order))
        data = Dataset(drawn.reshape(-1, drawn.shape[2]), np.arange(len(drawn) + 1) * n)
        if self.has_answers and answers is not None:
            data = data.with_answers(answers[own])
        elif self.has_answers:
            data = data.with_answers(labellers.label(task, drawn, self.labeller))
        return batch_of(data, task, has_answers=self.has_answers)

    def batches(self, rank: int = 0, world_size: int = 1) -> Generator[Batch]:
        """See `BatchStream`. Instances that are drawn in order come from other processes.

        Python draws them, and a training's own Python waits while another thread runs Python: a
        training on pages took a fifth longer. Processes take seconds to start, so a thread makes
        the first batches.
        """
        if not self.task.facts.drawn_in_order:
            yield from super().batches(rank, world_size)
            return
        batch = partial(self.batch, rank=rank, world_size=world_size)
        with closing(prefetch(batch, self.first, self.num_prefetch)) as first:
            yield from islice(first, FROM_THREAD)
        yield from ordered_map(batch, count(self.first + FROM_THREAD), PROCESSES)

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
class DatasetStream(BatchStream):
    """The rows of a dataset. Each epoch has every row once; see `shuffled_batches`.

    Raises:
        InputError: no row has one of the sizes, or a network holds out all rows.
    """

    examples: Dataset  # in memory or on disk. Rows of other `sizes`, or of weight 0, are left out.
    # The share of the rows that each network holds out for validation. If rows have groups, a
    # network holds out whole groups, so that its share is only about as large.
    valid_share: float = 0.0
    max_valid: int = 0  # the maximum number of rows that a network holds out
    # The number of networks. Each network holds out a share of the rows, and no two shares have a
    # row in common. If there is only one network, no batch has the rows that the network holds out.
    # If there are several networks, batches include all rows. `Batch.held_out_by` says which
    # network holds out a row. All other networks learn from this row.
    num_parts: int = 1
    name: str = "examples"  # in error messages, such as the path of their file
    is_augmented: bool = False  # whether to change the examples of each batch; see `augment`

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
        self.held_out = [self._selected(part) for part in parts]
        self.fingerprint = self.examples.fingerprint
        self._shuffled = (-1, list[Indices]())  # epoch of the last shuffle, and its batches

    def _selected(self, rows: Indices) -> Dataset:
        return Dataset.of([self.examples[row] for row in rows.tolist()])

    def learned_by(self, network: int, max_count: int) -> Dataset:
        """Return at most `max_count` examples, evenly spaced, that a network learns from."""
        rows = self._drawn
        if self._held_out_by is not None:
            rows = rows[self._held_out_by[rows] != network]
        step = -(-len(rows) // max_count)
        return self._selected(rows[::step])

    @property
    def batches_per_epoch(self) -> int:
        """The number of batches in an epoch."""
        return -(-len(self._drawn) // self.batch_size)

    def rows(self, k: int) -> Indices:
        """Return the rows of batch k."""
        epoch, place = divmod(k, self.batches_per_epoch)
        if self._shuffled[0] != epoch:
            order = FILE_ORDER if self.has_answers else INSTANCE_ORDER
            rng = np.random.default_rng([self.seed, order, epoch])
            batches = shuffled_batches(self._drawn, self.examples.sizes, self.batch_size, rng)
            self._shuffled = (epoch, batches)
        return self._shuffled[1][place]

    def whole_batch(self, k: int, rank: int, world_size: int) -> Batch:
        """See `BatchStream`. A process without rows gets one example without target tokens.

        Every process has to run every training step, because the gradients of all processes are
        averaged.
        """
        rows = self.rows(k)
        part = rows_of_rank(len(rows), rank, world_size)
        is_idle = part.start == part.stop
        part = slice(1) if is_idle else part
        rng = np.random.default_rng([self.seed, FILE_TRANSFORMS, k]) if self.is_augmented else None
        batch = batch_of(
            self.examples, self.task, rows, has_answers=self.has_answers, rng=rng, part=part
        )
        if is_idle:
            return batch._replace(target_lengths=torch.zeros_like(batch.target_lengths))
        if self._held_out_by is not None:
            held_out_by = torch.from_numpy(self._held_out_by[rows[part]])
            batch = batch._replace(held_out_by=held_out_by)
        return batch


def cut_batch(rng: np.random.Generator, task: Task, batch: Batch, num_cuts: int) -> Batch:
    """Return a batch whose answers are all cut after the same random number of known tokens.

    If answers are closed tours (`Facts.circular`), any element may be first and both directions are
    correct. Then the returned batch has `num_cuts` copies of each example. The first element and
    the direction of each copy are random, and at least the first token is known. Examples of other
    tasks are not repeated, because all copies would be equal.
    """
    longest, min_known = int(batch.target_lengths.max()), 0
    if task.facts.circular:
        batch = batch.map(lambda tensor: tensor.repeat_interleave(num_cuts, 0))
        targets = _random_rotations(rng, batch.targets, batch.target_lengths - 1)
        batch, min_known = batch._replace(targets=targets), int(longest > 1)
    return batch._replace(num_known=int(rng.integers(min_known, max(longest, 1))))


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


def prefetch(make: Callable[[int], Item], first: int, num_prefetch: int) -> Generator[Item]:
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
    instances of different sizes. One batch may have fewer than `batch_size` examples. `indices` are
    the examples to draw, and `sizes` has the number of elements of each example by its index.
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
