"""Test-time augmentation: answer several views of an instance and choose the best answer.

View 0 is the instance itself. In all other views, the elements are shuffled. If the task is
symmetric, these views may also be rotated or mirrored. If the task has a
`ptrnet.tasks.base.Mirror`, they may be read backwards. If the task sets the order that the model
reads, the elements of each view are sorted into this order. See `augmented_view`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet.constraints import Begun, Constraint
from ptrnet.data.batches import SYMMETRIES, apply_symmetry, pad_instances
from ptrnet.decoding import Decoder, Hypotheses
from ptrnet.geometry import reading_order
from ptrnet.models.base import PointerModel, as_parameters
from ptrnet.tasks.base import Choice, Mirror, Task
from ptrnet.types import CLOSED, Example, Floats, Indices


def augmented_view(number: int, task: Task, instance: Floats) -> tuple[Floats, Indices]:
    """Return a view of an instance for test-time augmentation: transformed and shuffled.

    Args:
        number: the number of the view. View 0 is neither transformed nor shuffled. If the task is
            symmetric, the view has symmetry `number % 8`. If the task is reversible, views with
            odd numbers are backwards. The seed of the shuffle is the number together with n.
        task: the task of the instance. If `task.order` is not "given", the elements of every view
            are sorted into this order.
        instance: `(n, d)` in the unit cube.

    Returns:
        The view `(n, d)`, and indices `(n,)`: element i of the view is element `indices[i]` of the
        instance.
    """
    order = np.arange(len(instance))
    if number:
        if task.facts.symmetric:
            (instance,) = apply_symmetry(instance[None], np.array([number % SYMMETRIES]))
        if mirror := mirror_of(number, task):
            (instance,) = mirror.inputs(instance[None])
        rng = np.random.default_rng([number, len(instance)])
        order[task.facts.fixed :] = rng.permutation(order[task.facts.fixed :])
    order = order[reading_order(instance[None, order], task.order)[0]]
    return instance[order], order


def mirror_of(number: int, task: Task) -> Mirror | None:
    """Return how view `number` of an instance is read backwards; None if it is not."""
    return task.facts.mirror if number % 2 == 1 else None


class Views(NamedTuple):
    """One view of each of B instances, as a model reads them."""

    inputs: Tensor  # (B, N, d)
    lengths: Tensor  # (B,)
    max_lengths: Tensor  # (B,) the maximum number of tokens of an answer, without END
    orders: Sequence[Indices]  # element i of view b is element `orders[b][i]` of instance b

    def answers(self, task: Task, hypotheses: Hypotheses) -> list[list[Indices]]:
        """Return the K answers to each view that a search found, as elements of its instance."""
        rows = zip(
            self.orders, hypotheses.tokens.cpu().numpy(), hypotheses.lengths.tolist(), strict=True
        )
        return [
            [order[task.from_tokens(t[:m])] for t, m in zip(tokens, lengths, strict=True)]
            for order, tokens, lengths in rows
        ]


def views_of(number: int, instances: Sequence[Floats], task: Task, model: PointerModel) -> Views:
    """Return view `number` of instances `(n, d)` as tensors for a model."""
    views, orders = zip(
        *(augmented_view(number, task, task.normalize(one)) for one in instances), strict=True
    )
    most = torch.tensor([task.max_length(len(view)) for view in views], device="cpu")
    padded = pad_instances(views, task.facts.exact_inputs)
    inputs, lengths, most = as_parameters(model, *padded, most)
    return Views(inputs, lengths, most, orders)


def decode_view(
    number: int,
    instances: Sequence[Floats],
    task: Task,
    model: PointerModel,
    decoder: Decoder,
    constraint: Constraint,
    beginnings: Sequence[Sequence[int]],
) -> list[list[Choice]]:
    """Decode view `number` of each instance, and return the answers to each instance.

    Args:
        number: the number of the view.
        instances: `(n, d)` as the user gave them.
        task: the task of the instances.
        model: the network.
        decoder: the search.
        constraint: the constraint on answers.
        beginnings: for each instance, the k elements with which its answer must begin.
    """
    views = views_of(number, instances, task, model)
    if len(beginnings[0]):
        places = [np.argsort(o)[list(b)] for o, b in zip(views.orders, beginnings, strict=True)]
        first = torch.from_numpy(np.array(places) + model.num_specials)
        constraint = Begun(constraint, first.to(views.inputs.device))
    hypotheses = decoder.decode(model, *views[:3], constraint)
    answers = views.answers(task, hypotheses)
    if mirror := mirror_of(number, task):
        answers = [
            [answer_forwards(mirror, task.normalize(one), outputs) for outputs in of_one]
            for one, of_one in zip(instances, answers, strict=True)
        ]
    log_probs = hypotheses.log_probs.tolist()
    return [list(zip(*pair, strict=True)) for pair in zip(answers, log_probs, strict=True)]


def answer_forwards(mirror: Mirror, instance: Floats, outputs: Indices) -> Indices:
    """Return the answer to an instance `(n, d)`, given the answer to its backwards view."""
    (forwards,) = mirror.answers(mirror.inputs(instance[None]), [outputs])
    return forwards


def best_answer(task: Task, example: Example, views: Sequence[Sequence[Choice]]) -> Choice:
    """Choose the answer to the example's instance among those to its views.

    If the task has costs (such as a tour's length), choose the cheapest answer. Otherwise sum the
    probabilities of each answer over the views that gave it, and choose the answer with the largest
    sum. Valid answers are brought into canonical form, and then changed so that they obey the
    example's rules.

    If the example has no rules and the model reads the elements in the given order, a single answer
    is returned unchanged.
    """
    every = [choice for of_view in views for choice in of_view]
    if len(every) == 1 and task.order == "given" and example.rules == CLOSED:
        return every[0]
    # The canonical form of an answer costs no more than the answer, so choose before converting.
    if task.facts.has_costs and example.rules == CLOSED:
        outputs, log_prob = _cheapest(task, example, every)
        return _canonicalize(task, example, outputs), log_prob
    if task.facts.has_costs:
        return _cheapest(task, example, [(_canonicalize(task, example, o), p) for o, p in every])
    likeliest: dict[bytes, dict[int, Choice]] = {}  # of each answer, in each view
    for number, of_view in enumerate(views):
        for outputs, log_prob in of_view:
            outputs = _canonicalize(task, example, outputs)
            by_view = likeliest.setdefault(outputs.tobytes(), {})
            if number not in by_view or log_prob > by_view[number][1]:
                by_view[number] = outputs, log_prob
    best = max(
        likeliest.values(),
        key=lambda by_view: np.logaddexp.reduce([p for _, p in by_view.values()]),
    )
    return max(best.values(), key=lambda choice: choice[1])


def _cheapest(task: Task, example: Example, choices: Sequence[Choice]) -> Choice:
    costs = task.costs(example, [outputs for outputs, _ in choices])
    assert costs is not None
    return choices[int(np.argmin(costs))]


def _canonicalize(task: Task, example: Example, outputs: Indices) -> Indices:
    canonical = canonicalize_valid(task, example.inputs, outputs)
    ends = task.facts.ends
    return ends.obey(example, canonical) if ends and example.rules != CLOSED else canonical


def canonicalize_valid(task: Task, inputs: Floats, outputs: Indices) -> Indices:
    """Return a valid answer in canonical form, and an invalid answer unchanged."""
    if task.answer_error(len(inputs), outputs) is not None:
        return outputs
    (canonical,) = task.canonicalize(inputs[None], [outputs])
    return canonical


def settle_valid(task: Task, inputs: Floats, outputs: Indices) -> Indices:
    """Correct a valid answer with `Facts.settle`. Return an invalid answer unchanged."""
    settle = task.facts.settle
    if settle is None or task.answer_error(len(inputs), outputs) is not None:
        return outputs
    return settle(inputs, outputs)
