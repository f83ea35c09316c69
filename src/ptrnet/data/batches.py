"""Known examples as padded batches, the form in which models are trained and measured."""

from collections.abc import Iterator, Sequence

import torch

from ptrnet.data.padding import pad_answers, pad_instances
from ptrnet.data.symmetries import arranged
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, Example, Floats, Indices


def batch_of(examples: Sequence[Example], task: Task) -> Batch:
    """One batch: inputs as the model sees them, answers as the tokens it is trained to emit.

    Raises:
        InputError: an example without an answer; it is named by where it came from.
    """
    instances: list[Floats] = []
    answers: list[Indices] = []
    for example in examples:
        if example.outputs is None:
            raise InputError(f"{example.source}: has no answer to measure against")
        seen = task.normalize(example.inputs)[None]
        inputs, given = arranged(task, seen, pad_answers([example.outputs]))
        instances += list(inputs)
        answers += given.rows()
    return padded(instances, answers, task)


def padded(instances: Sequence[Floats], answers: Sequence[Indices], task: Task) -> Batch:
    """One batch of instances as the model sees them, and of answers in canonical order."""
    inputs, lengths = pad_instances(instances)
    targets = task.to_tokens(pad_answers(answers))
    return Batch(
        inputs, lengths, torch.from_numpy(targets.indices), torch.from_numpy(targets.lengths)
    )


def batches_of(examples: Sequence[Example], task: Task, size: int) -> list[Batch]:
    """All examples in batches of at most `size`, those of near sizes together."""
    by_size = sorted(examples, key=lambda e: len(e.inputs))
    return [batch_of(by_size[k : k + size], task) for k in range(0, len(by_size), size)]


def near_sizes(sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """Places of items to take together: of near sizes, at most `most` in all with padding."""
    group: list[int] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if group and sizes[place] * (len(group) + 1) > most:
            yield group
            group = []
        group.append(place)
    if group:
        yield group
