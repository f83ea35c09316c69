"""Padded batches: of instances, of answers, and of examples as models are trained on them."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from ptrnet.data.checks import required_answer
from ptrnet.data.symmetries import canonicalize
from ptrnet.tasks.base import Task
from ptrnet.types import Answers, Batch, Example, Floats, Indices


def pad_instances(instances: Sequence[Floats], is_exact: bool = False) -> tuple[Tensor, Tensor]:
    """Instances `(n, d)` as one tensor `(B, N, d)`, and lengths `(B,)` int64.

    Args:
        instances: of one d.
        is_exact: whether the tensor is float64 instead of float32.
    """
    lengths, dtype = [len(instance) for instance in instances], (np.float32, np.float64)[is_exact]
    padded = np.zeros((len(instances), max(lengths), instances[0].shape[1]), dtype)
    for row, instance in zip(padded, instances, strict=True):
        row[: len(instance)] = instance
    return torch.from_numpy(padded), torch.tensor(lengths)


def pad_answers(answers: Sequence[Indices]) -> Answers:
    """Answers of different lengths as one array `(B, M)`: each flat, and padded with zeros."""
    lengths = np.array([answer.size for answer in answers], np.int64)
    padded = np.zeros((len(answers), int(lengths.max(initial=0))), np.int64)
    for row, answer in zip(padded, answers, strict=True):
        row[: answer.size] = answer.ravel()
    return Answers(padded, lengths)


def batch_of(examples: Sequence[Example], task: Task) -> Batch:
    """One batch: inputs as the model sees them, answers as the tokens it is trained to emit.

    Raises:
        InputError: an example without an answer; the message begins with its source.
    """
    instances: list[Floats] = []
    answers: list[Indices] = []
    for example in examples:
        answer = required_answer(example, task)
        scaled = task.normalize(example.inputs)[None]
        inputs, canonical = canonicalize(task, scaled, pad_answers([answer]))
        instances += list(inputs)
        answers += canonical.rows()
    return pad_batch(instances, answers, task)


def pad_batch(instances: Sequence[Floats], answers: Sequence[Indices], task: Task) -> Batch:
    """One batch of normalized instances `(n, d)` and of canonical answers to them."""
    inputs, lengths = pad_instances(instances, task.exact_inputs)
    targets = task.to_tokens(pad_answers(answers))
    return Batch(
        inputs, lengths, torch.from_numpy(targets.indices), torch.from_numpy(targets.lengths)
    )


def batches_of(examples: Sequence[Example], task: Task, batch_size: int) -> list[Batch]:
    """All examples in batches of at most `batch_size`, in the order of their sizes."""
    by_size = sorted(examples, key=lambda e: len(e.inputs))
    starts = range(0, len(by_size), batch_size)
    return [batch_of(by_size[k : k + batch_size], task) for k in starts]


def bucket_by_size(
    sizes: Sequence[int], max_total: int, one_size: bool = False
) -> Iterator[list[int]]:
    """Buckets of items to pad together: each the indices of items of about one size.

    Args:
        sizes: of all items.
        max_total: the largest total size of a bucket, padding included; an item that is larger
            gets a bucket of its own.
        one_size: whether all items of a bucket have the same size.
    """
    bucket: list[int] = []
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        is_full = sizes[index] * (len(bucket) + 1) > max_total
        if bucket and (is_full or (one_size and sizes[index] != sizes[bucket[0]])):
            yield bucket
            bucket = []
        bucket.append(index)
    if bucket:
        yield bucket
