"""Pad instances and answers of several lengths into batches of tensors."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from ptrnet.data.checks import required_answer
from ptrnet.data.symmetries import canonicalize
from ptrnet.masks import gather_tokens
from ptrnet.ragged import pad
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, Example, Floats, Indices


def pad_instances(instances: Sequence[Floats], is_exact: bool = False) -> tuple[Tensor, Tensor]:
    """Pad instances `(n, d)` with zeros. Return a tensor `(B, N, d)` and lengths `(B,)` int64.

    Args:
        instances: instances with the same d.
        is_exact: whether to return a tensor of float64 instead of float32.

    Examples:
        >>> padded, lengths = pad_instances([np.array([[0.5], [0.25]]), np.array([[1.0]])])
        >>> padded[..., 0].tolist(), lengths.tolist()
        ([[0.5, 0.25], [1.0, 0.0]], [2, 1])
    """
    lengths, dtype = [len(instance) for instance in instances], (np.float32, np.float64)[is_exact]
    padded = np.zeros((len(instances), max(lengths), instances[0].shape[1]), dtype)
    for row, instance in zip(padded, instances, strict=True):
        row[: len(instance)] = instance
    return torch.from_numpy(padded), torch.tensor(lengths, device="cpu")


def batch_of(examples: Sequence[Example], task: Task) -> Batch:
    """Return a batch of examples: normalized inputs, and answers as target tokens.

    Raises:
        InputError: an example has no answer.
    """
    instances: list[Floats] = []
    answers: list[Indices] = []
    in_order: list[Floats | None] = []
    for example in examples:
        answer = required_answer(example, task)
        scaled = task.normalize(example.inputs)[None]
        inputs, canonical = canonicalize(task, scaled, [answer])
        instances += list(inputs)
        answers += canonical
        in_order.append(None if example.grades is None else example.grades[answer])
    batch = pad_batch(instances, answers, task, in_order)
    weights = torch.tensor(
        [example.weight for example in examples], dtype=torch.float32, device="cpu"
    )
    return batch if (weights == 1).all() else batch._replace(weights=weights)


def pad_batch(
    instances: Sequence[Floats],
    answers: Sequence[Indices],
    task: Task,
    in_order: Sequence[Floats | None] | None = None,
) -> Batch:
    """Return a batch of normalized instances and their canonical answers.

    Args:
        instances: `(n, d)` each.
        answers: `(m,)` each.
        task: the task of the instances.
        in_order: for each answer, the grades `(m,)` of its elements, in the answer's order. None
            for an example without grades.
    """
    inputs, lengths = pad_instances(instances, task.facts.exact_inputs)
    targets, target_lengths = map(torch.from_numpy, pad(task.to_tokens(answers)))
    known, ties = [], task.facts.ties
    if ties is not None:
        given = in_order or [None] * len(answers)
        for instance, answer, grades in zip(instances, answers, given, strict=True):
            known.append(ties(len(instance), answer, grades)[:, None])
    return Batch(
        inputs,
        lengths,
        targets,
        target_lengths,
        pad_instances(known)[0][..., 0] if known else None,
    )


def right_tokens(batch: Batch, num_tokens: int, first: int, stop: int) -> Tensor | None:
    """Return the mask `(B, stop - first, S + N)` of the tokens that are correct at each step.

    Elements with equal grades are tied: any of these elements may come next. So the correct tokens
    are the elements with the target's grade that did not come earlier in the answer. If the target
    is a special slot such as END, only this slot is correct. If the batch has no grades, only the
    targets are correct, and the function returns None.

    Args:
        batch: the batch, with the targets of all steps.
        num_tokens: number of special slots and elements, S + N.
        first: the first step.
        stop: the step after the last step.
    """
    if batch.grades is None:
        return None
    num_specials = num_tokens - batch.grades.shape[1]
    # The class of an element is its grade. Special slots get infinity, which is not a grade.
    of_specials = batch.grades.new_full((len(batch.grades), num_specials), torch.inf)
    classes = torch.cat([of_specials, batch.grades], 1)
    targets = batch.targets[:, first:stop]
    slots = torch.arange(num_tokens, device=targets.device)
    is_target = slots == targets[..., None]
    same_class = classes[:, None] == classes.gather(1, targets)[..., None]
    is_element = (slots >= num_specials) & (slots < num_specials + batch.lengths[:, None])
    steps = torch.arange(batch.targets.shape[1], device=targets.device).expand_as(batch.targets)
    never = torch.full_like(classes, len(steps[0]), dtype=torch.int64)
    came_at = never.scatter(1, batch.targets, steps)
    remains = came_at[:, None] >= steps[:, first:stop, None]
    return is_target | (same_class & is_element[:, None] & remains)


def token_log_likelihoods(
    log_probs: Tensor, batch: Batch, first: int = 0
) -> tuple[Tensor, Tensor | None]:
    """Return `(B, R)`: at each of R steps, the log of the total probability of correct tokens.

    Also return the result of `right_tokens`: the mask of correct tokens, or None if only the
    targets are correct. Values after the END of an answer have no meaning.

    Args:
        log_probs: `(B, R, S + N)` log-probabilities of all tokens at R steps.
        batch: the batch, with the targets of all steps.
        first: the number of the first step in `log_probs`.
    """
    stop = first + log_probs.shape[1]
    right = right_tokens(batch, log_probs.shape[2], first, stop)
    if right is None:
        return gather_tokens(log_probs, batch.targets[:, first:stop]), None
    return log_probs.masked_fill(~right, -torch.inf).logsumexp(-1), right


def batches_of(examples: Sequence[Example], task: Task, batch_size: int) -> list[Batch]:
    """Return examples in batches of at most `batch_size`, in the order of `sorted_by_size`."""
    by_size = sorted_by_size(examples)
    starts = range(0, len(by_size), batch_size)
    return [batch_of(by_size[k : k + batch_size], task) for k in starts]


def sorted_by_size(examples: Sequence[Example]) -> list[Example]:
    """Sort examples by their number of elements. Examples of one size keep their order."""
    return sorted(examples, key=lambda e: len(e.inputs))


def bucket_by_size(
    sizes: Sequence[int], max_total: int, one_size: bool = False
) -> Iterator[list[int]]:
    """Sort items by size, and yield the indices of items that should be padded together.

    Args:
        sizes: the size of each item.
        max_total: the maximum size of a bucket, padding included. A larger item gets a separate
            bucket.
        one_size: whether all items of a bucket must have the same size.

    Examples:
        >>> list(bucket_by_size([5, 2, 3, 2], max_total=6))
        [[1, 3], [2], [0]]
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
