"""Answer instances: one view of each by default, several for test-time augmentation.

`views_of` makes views as a network reads them: normalized, ordered and padded. `decode_view`
answers them, and `best_answer` chooses among the answers to several views.

View 0 is the instance itself. In all other views, the elements are shuffled. If the task is
symmetric, these views may also be rotated or mirrored. If the task has a
`ptrnet.tasks.base.Mirror`, they may be read backwards. If the task sets the order that the model
reads, the elements of each view are sorted into this order. See `augmented_view`.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from ptrnet.constraints import Begun, Constraint
from ptrnet.data.batches import SYMMETRIES, apply_symmetry, pad_instances
from ptrnet.decoding import Decoder, Hypotheses
from ptrnet.geometry import model_order
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
    if not number and task.order == "given":
        return instance, order
    if number:
        if task.facts.symmetric:
            (instance,) = apply_symmetry(instance[None], np.array([number % SYMMETRIES]))
        if mirror := mirror_of(number, task):
            (instance,) = mirror.inputs(instance[None])
        rng = np.random.default_rng([number, len(instance)])
        order[task.facts.fixed :] = rng.permutation(order[task.facts.fixed :])
    order = order[model_order(instance[None, order], task.order)[0]]
    return instance[order], order


def mirror_of(number: int, task: Task) -> Mirror | None:
    """Return how view `number` of an instance is read backwards; None if it is not."""
    return task.facts.mirror if number % 2 == 1 else None


def views_of(
    number: int, instances: Sequence[Floats], task: Task, model: PointerModel
) -> tuple[Tensor, Tensor, Tensor, Sequence[Indices]]:
    """Return view `number` of B instances `(n, d)`, as a model reads them.

    It has inputs `(B, N, d)`, lengths `(B,)`, the maximum number of tokens of each answer `(B,)`
    without END, and the orders: element i of view b is element `orders[b][i]` of instance b.
    """
    normalized = [
        one
        for _, of_one_size in groupby(instances, len)
        for one in task.normalize(np.stack([*of_one_size]))
    ]
    views, orders = zip(*(augmented_view(number, task, one) for one in normalized), strict=True)
    padded, lengths = pad_instances(views, task.facts.exact_inputs)
    return (*as_parameters(model, padded, lengths, max_lengths_of(task, lengths)), orders)  # type: ignore[return-value]


def max_lengths_of(task: Task, lengths: Tensor) -> Tensor:
    """Return the maximum number of tokens `(B,)`, without END, of answers to B instances."""
    most = [task.max_length(n) for n in lengths.tolist()]
    return torch.tensor(most, device=lengths.device)


def answers_of(
    task: Task, orders: Sequence[Indices], hypotheses: Hypotheses
) -> list[list[Indices]]:
    """Return the K answers to each view that a search found, as elements of its instance."""
    tokens, lengths = hypotheses.tokens.cpu().numpy(), hypotheses.lengths.tolist()
    return [
        [order[task.from_tokens(t[:m])] for t, m in zip(*of_one, strict=True)]
        for order, *of_one in zip(orders, tokens, lengths, strict=True)
    ]


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

    Instances `(n, d)` are as the user gave them. Each answer begins with its `beginnings`.
    """
    inputs, lengths, most, orders = views_of(number, instances, task, model)
    if len(beginnings[0]):
        places = [np.argsort(o)[list(b)] for o, b in zip(orders, beginnings, strict=True)]
        first = torch.from_numpy(np.array(places) + model.num_specials)
        constraint = Begun(constraint, first.to(inputs.device))
    hypotheses = decoder.decode(model, inputs, lengths, most, constraint)
    answers = answers_of(task, orders, hypotheses)
    if mirror := mirror_of(number, task):
        answers = [
            [mirror.answers(mirror.inputs(task.normalize(one)[None]), [o])[0] for o in of_one]
            for one, of_one in zip(instances, answers, strict=True)
        ]
    log_probs = hypotheses.log_probs.tolist()
    return [list(zip(*pair, strict=True)) for pair in zip(answers, log_probs, strict=True)]


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
