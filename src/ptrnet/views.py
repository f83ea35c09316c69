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

from ptrnet.constraints import Begun, Constraint
from ptrnet.data.batches import pad_instances
from ptrnet.data.symmetries import SYMMETRIES, apply_symmetry
from ptrnet.decoding import Decoder
from ptrnet.geometry.points import reading_order
from ptrnet.models.base import PointerModel, as_parameters
from ptrnet.tasks.base import Mirror, Task
from ptrnet.tasks.tsp.ends import obey
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


class Candidate(NamedTuple):
    """An answer to an instance. A decoder found this answer for one view of the instance."""

    outputs: Indices
    log_prob: float
    view: int  # the view's number


def decode_view(
    number: int,
    instances: Sequence[Floats],
    task: Task,
    model: PointerModel,
    decoder: Decoder,
    constraint: Constraint,
    beginnings: Sequence[Indices] = (),
) -> list[list[Candidate]]:
    """Decode view `number` of each instance, and return the candidate answers to each instance.

    Args:
        number: the number of the view.
        instances: normalized instances `(n, d)`.
        task: the task of the instances.
        model: the network.
        decoder: the search.
        constraint: the constraint on answers.
        beginnings: for each instance, the elements `(k,)` with which its answer must begin. Empty:
            answers may begin anywhere.
    """
    views, orders = zip(
        *(augmented_view(number, task, instance) for instance in instances), strict=True
    )
    max_lengths = torch.tensor(
        [task.max_length(len(instance)) for instance in instances], device="cpu"
    )
    padded = pad_instances(views, task.facts.exact_inputs)
    inputs, lengths, most = as_parameters(model, *padded, max_lengths)
    if beginnings:
        places = [np.argsort(o)[b] for o, b in zip(orders, beginnings, strict=True)]
        first = torch.from_numpy(np.array(places) + model.num_specials).to(inputs.device)
        constraint = Begun(constraint, first)
    hypotheses = decoder.decode(model, inputs, lengths, most, constraint)
    rows = zip(
        instances,
        orders,
        hypotheses.tokens.cpu().numpy(),
        hypotheses.lengths.tolist(),
        hypotheses.log_probs.tolist(),
        strict=True,
    )
    candidates = []
    for instance, order, *hypotheses_of_one in rows:
        found = zip(*hypotheses_of_one, strict=True)
        answers = [(order[task.from_tokens(tokens[:m])], log_prob) for tokens, m, log_prob in found]
        if mirror := mirror_of(number, task):
            answers = [(answer_forwards(mirror, instance, a), log_prob) for a, log_prob in answers]
        candidates.append([Candidate(answer, log_prob, number) for answer, log_prob in answers])
    return candidates


def answer_forwards(mirror: Mirror, instance: Floats, outputs: Indices) -> Indices:
    """Return the answer to an instance `(n, d)`, given the answer to its backwards view."""
    (forwards,) = mirror.answers(mirror.inputs(instance[None]), [outputs])
    return forwards


def best_candidate(task: Task, example: Example, candidates: Sequence[Candidate]) -> Candidate:
    """Choose the answer to the example's instance.

    If the task has costs (such as a tour's length), choose the cheapest candidate. Otherwise sum
    the probabilities of each answer over the views that gave it, and choose the answer with the
    largest sum. Valid answers are brought into canonical form, and then changed so that they obey
    the example's rules.

    If the example has no rules and the model reads the elements in the given order, a single
    candidate is returned unchanged.
    """
    if len(candidates) == 1 and task.order == "given" and example.rules == CLOSED:
        return candidates[0]
    # The canonical form of an answer costs no more than the answer, so choose before converting.
    if task.facts.has_costs and example.rules == CLOSED:
        best = _cheapest(task, example, candidates)
        return best._replace(outputs=_canonicalize(task, example, best.outputs))
    candidates = [c._replace(outputs=_canonicalize(task, example, c.outputs)) for c in candidates]
    if task.facts.has_costs:
        return _cheapest(task, example, candidates)
    by_answer: dict[bytes, dict[int, Candidate]] = {}  # the likeliest candidate of each view
    for candidate in candidates:
        by_view = by_answer.setdefault(candidate.outputs.tobytes(), {})
        known = by_view.get(candidate.view)
        if known is None or candidate.log_prob > known.log_prob:
            by_view[candidate.view] = candidate
    likeliest = max(
        by_answer.values(),
        key=lambda by_view: np.logaddexp.reduce([c.log_prob for c in by_view.values()]),
    )
    return max(likeliest.values(), key=lambda c: c.log_prob)


def _cheapest(task: Task, example: Example, candidates: Sequence[Candidate]) -> Candidate:
    costs = task.costs(example, [c.outputs for c in candidates])
    assert costs is not None
    return candidates[int(np.argmin(costs))]


def _canonicalize(task: Task, example: Example, outputs: Indices) -> Indices:
    canonical = canonicalize_valid(task, example.inputs, outputs)
    return canonical if example.rules == CLOSED else obey(example, canonical)


def canonicalize_valid(task: Task, inputs: Floats, outputs: Indices) -> Indices:
    """Return a valid answer in canonical form, and an invalid answer unchanged."""
    if task.answer_error(len(inputs), outputs) is not None:
        return outputs
    (canonical,) = task.canonicalize(inputs[None], [outputs])
    return canonical


def settle_valid(task: Task, inputs: Floats, outputs: Indices) -> Indices:
    """Correct a valid answer with `Task.settle`. Return an invalid answer unchanged."""
    is_valid = task.answer_error(len(inputs), outputs) is None
    return task.settle(inputs, outputs) if is_valid else outputs
