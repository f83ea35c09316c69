"""`Batch`: instances of several sizes and their answers, augmented, and padded to tensors.

`apply_symmetry` changes the coordinates of instances, which does not change answers.
`permute_elements` changes the order of elements, and `remap_indices` adapts the indices in answers
to this order. `canonicalize` sorts the elements into the order that the model reads.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet.data.checks import required_answer
from ptrnet.geometry import model_order
from ptrnet.masks import gather_tokens
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Floats, Indices, pad


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


class Batch(NamedTuple):
    """The padded tensors of a training step, or of a pass over known answers.

    Only the lengths tell which entries are padding.
    """

    inputs: Tensor  # (B, N, d) float32, or float64 for tasks with `exact_inputs`
    lengths: Tensor  # (B,) int64, 1..N
    targets: Tensor  # (B, M) int64 tokens; each sequence ends with END. M is 0 without answers
    target_lengths: Tensor  # (B,) int64, including END; 0 for an answer that is not learned
    # (B, N) float32. An answer is right if it equals the targets up to swaps of elements with equal
    # grades. None if there are no ties.
    grades: Tensor | None = None
    # (B,) int64, for an ensemble: the index of the network that does not learn from the example, or
    # -1 if all networks learn from the example. None if all networks learn from all examples.
    held_out_by: Tensor | None = None
    weights: Tensor | None = None  # (B,) float32, the weights in the loss. None if all are 1.
    # The number of tokens before the cut of the answers. These tokens are given, not learned.
    num_known: int = 0
    # If answers are unknown: (n, d) each, not scaled, with elements in the order of `inputs`.
    instances: Sequence[Floats] = ()

    def map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """Return the batch with the results of a function of each tensor."""
        parts = (function(part) if isinstance(part, Tensor) else part for part in self)
        return Batch(*parts)  # type: ignore[arg-type]


def batch_of(
    data: Dataset,
    task: Task,
    rows: Indices | Sequence[int] | None = None,
    *,
    has_answers: bool = True,
    rng: np.random.Generator | None = None,
    part: slice = slice(None),
) -> Batch:
    """Return rows of a dataset as a batch: normalized inputs, and answers as target tokens.

    Args:
        rows: `(B,)`, the rows of the batch. None: all rows.
        has_answers: whether the batch has the answers. If not, it has the `instances` themselves.
        rng: changes the examples at random; see `augment`. None: do not change them.
        part: which of the `rows` to return. The random changes depend on all `rows`.

    Raises:
        InputError: a row has no answer.
    """
    rows = np.arange(len(data)) if rows is None else np.asarray(rows)
    is_answered = data.is_answered
    if has_answers and (
        data.answers is None or (is_answered is not None and not is_answered[rows].all())
    ):
        for row in rows.tolist():
            required_answer(data[row], task)
    read: list[Floats] = []
    answers: list[Indices] = []
    instances: list[Floats] = []
    outputs: Sequence[Indices]
    for group in np.split(rows, np.flatnonzero(np.diff(data.sizes[rows])) + 1):
        if has_answers:
            given, outputs = data.rows_of_one_size(group)
            inputs = task.normalize(given)
            if rng is not None:
                inputs, outputs = augment(rng, task, inputs, outputs)
            inputs, outputs = canonicalize(task, inputs, outputs)
            answers += outputs
        else:
            given = data.elements[data.starts[group][:, None] + np.arange(data.sizes[group[0]])]
            inputs = task.normalize(given)
            order = model_order(inputs, task.order)
            inputs = permute_elements(inputs, order)
            instances += list(permute_elements(given, order))
        read += list(inputs)
    rows, answers, weights = rows[part], answers[part], data.weights
    tokens = task.to_tokens(answers) if has_answers else [np.zeros(0, np.int64)] * len(rows)
    targets, target_lengths = map(torch.from_numpy, pad(tokens))
    return Batch(
        *pad_instances(read[part], task.facts.exact_inputs),
        targets,
        target_lengths,
        _grades(data, rows, answers, task) if has_answers else None,
        weights=None if weights is None else torch.from_numpy(weights[rows]).float(),
        instances=instances[part],
    )


def _grades(data: Dataset, rows: Indices, answers: Sequence[Indices], task: Task) -> Tensor | None:
    """Return the grades `(B, N)` of the elements of canonical answers; None without ties."""
    if task.facts.ties is None:
        return None
    known = []
    for row, answer in zip(rows.tolist(), answers, strict=True):
        grades, outputs = data.grades_of(row), data.outputs(row)
        in_order = None if grades is None or outputs is None else grades[outputs]
        known.append(task.facts.ties(int(data.sizes[row]), answer, in_order)[:, None])
    return pad_instances(known)[0][..., 0]


def right_tokens(batch: Batch, num_tokens: int, first: int, stop: int) -> Tensor | None:
    """Return the mask `(B, stop - first, S + N)` of the tokens that are correct at each step.

    Elements with equal grades are tied: any of these elements may come next. So the correct tokens
    are the elements with the target's grade that did not come earlier in the answer. If the target
    is a special slot such as END, only this slot is correct. If the batch has no grades, only the
    targets are correct, and the function returns None. The batch has the targets of all steps.
    `num_tokens` is S + N.
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
    targets are correct. Values after the END of an answer have no meaning. `log_probs`
    `(B, R, S + N)` are those of all tokens at R steps from step `first` on, and the batch has the
    targets of all steps.
    """
    stop = first + log_probs.shape[1]
    right = right_tokens(batch, log_probs.shape[2], first, stop)
    if right is None:
        return gather_tokens(log_probs, batch.targets[:, first:stop]), None
    return log_probs.masked_fill(~right, -torch.inf).logsumexp(-1), right


def batches_of(data: Dataset, task: Task, batch_size: int, has_answers: bool = True) -> list[Batch]:
    """Return a dataset in batches of at most `batch_size`, in the order of `rows_by_size`."""
    rows = rows_by_size(data)
    starts = range(0, len(rows), batch_size)
    parts = (rows[k : k + batch_size] for k in starts)
    return [batch_of(data, task, part, has_answers=has_answers) for part in parts]


def rows_by_size(data: Dataset) -> Indices:
    """Return the rows sorted by their number of elements; rows of one size keep their order."""
    return np.argsort(data.sizes, kind="stable")


def bucket_by_size(
    sizes: Sequence[int], max_total: int, one_size: bool = False
) -> Iterator[list[int]]:
    """Sort items by size, and yield the indices of items that should be padded together.

    Args:
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


SYMMETRIES = 8  # four rotations of a square, with and without a reflection


def augment(
    rng: np.random.Generator, task: Task, inputs: Floats, answers: Sequence[Indices]
) -> tuple[Floats, Sequence[Indices]]:
    """Shuffle the elements of each example and apply the symmetries that the task allows.

    The first `fixed` elements stay in place. If the task is symmetric, apply a random symmetry of
    the square to each instance. If the task is reversible, read about half of the examples
    backwards. Correct answers remain correct, but may no longer be canonical.

    Args:
        rng: draws the order, the symmetry and the direction of each example.
        inputs: `(B, n, d)` instances in the unit cube.
    """
    batch, n, _ = inputs.shape
    if task.facts.symmetric:
        inputs = apply_symmetry(inputs, rng.integers(SYMMETRIES, size=(batch,)))
    if task.facts.mirror:
        turned = np.asarray(rng.random(batch) < 0.5)
        backwards = task.facts.mirror.answers(inputs, answers)
        inputs = np.where(turned[:, None, None], task.facts.mirror.inputs(inputs), inputs)
        answers = [backwards[k] if turned[k] else answers[k] for k in range(batch)]
    order = np.tile(np.arange(n), (batch, 1))
    order[:, task.facts.fixed :] = rng.permuted(order[:, task.facts.fixed :], axis=1)
    return permute_elements(inputs, order), remap_indices(answers, np.argsort(order, axis=1))


def canonicalize(
    task: Task, inputs: Floats, answers: Sequence[Indices]
) -> tuple[Floats, Sequence[Indices]]:
    """Sort elements into the order that the model reads, and make answers canonical."""
    if task.order != "given":
        order = model_order(inputs, task.order)
        inputs = permute_elements(inputs, order)
        answers = remap_indices(answers, np.argsort(order, axis=1))
    return inputs, task.canonicalize(inputs, answers)


def apply_symmetry(points: Floats, symmetries: Indices) -> Floats:
    """Apply a symmetry of the unit square to each instance `(n, d)` of a batch.

    Only the first two features of an element change.

    Args:
        points: `(B, n, d)`; the first two features are coordinates.
        symmetries: `(B,)` numbers from 0 to 7. Bit 0 swaps x and y. Then bit 1 mirrors x, and bit 2
            mirrors y.

    Examples:
        >>> apply_symmetry(np.array([[[0.0, 0.25]]]), np.array([3])).tolist()  # swap, mirror x
        [[[0.75, 0.0]]]
    """
    bits = symmetries[:, None, None] >> np.arange(3) & 1  # (B, 1, 3)
    swapped = np.where(bits[..., :1], points[..., 1::-1], points[..., :2])
    moved = np.where(bits[..., 1:], 1 - swapped, swapped)
    return np.concatenate([moved, points[..., 2:]], -1)


def permute_elements(inputs: Floats, order: Indices) -> Floats:
    """Return instances `(B, n, d)` whose element i is element `order[b, i]` of `inputs[b]`."""
    return np.take_along_axis(inputs, order[..., None], 1)


def remap_indices(answers: Sequence[Indices], indices: Indices) -> list[Indices]:
    """Replace each index i in the answer of row b by `indices[b, i]`.

    If `indices` is the `order` of `permute_elements`, this function converts answers of the
    permuted instances to answers of the original instances. If `indices` is the argsort of `order`,
    the function converts in the opposite direction.

    Examples:
        >>> remap_indices([np.array([0, 2])], np.array([[5, 6, 7]]))
        [array([5, 7])]
    """
    return [row[answer] for row, answer in zip(indices, answers, strict=True)]
