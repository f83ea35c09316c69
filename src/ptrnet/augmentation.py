"""Test-time augmentation: an instance is answered from several views, and the best answer counts.

A view shows the model the same instance, turned or mirrored where the task allows it and with its
elements in another order (`ptrnet.data.symmetries.augmented_view`). View 0 is the instance itself.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from ptrnet.constraints import Begun, Constraint
from ptrnet.data.batches import pad_instances
from ptrnet.data.symmetries import augmented_view
from ptrnet.decoding import Decoder
from ptrnet.models.base import PointerModel, as_parameters
from ptrnet.tasks.base import Task
from ptrnet.types import CLOSED, Example, Floats, Indices, pad_answers


class Candidate(NamedTuple):
    """An answer to an instance, from a decoder's hypothesis for one of its views."""

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
    """The decoder's hypotheses for view `number` of each instance, as answers to the instance.

    Args:
        number: of the view.
        instances: `(n, d)` each, normalized.
        task: of the instances.
        model: the network.
        decoder: searches for the answers.
        constraint: what they obey.
        beginnings: `(k,)` elements of each instance with which its answer has to begin; if none,
            it may begin anywhere.
    """
    views, orders = zip(
        *(augmented_view(number, task, instance) for instance in instances), strict=True
    )
    max_lengths = torch.tensor([task.max_length(len(instance)) for instance in instances])
    padded = pad_instances(views, task.exact_inputs)
    inputs, lengths, most = as_parameters(model, *padded, max_lengths)
    if beginnings:
        places = [np.argsort(o)[b] for o, b in zip(orders, beginnings, strict=True)]
        first = torch.from_numpy(np.array(places) + model.num_specials).to(inputs.device)
        constraint = Begun(constraint, first)
    hypotheses = decoder.decode(model, inputs, lengths, most, constraint)
    rows = zip(
        orders,
        hypotheses.tokens.cpu().numpy(),
        hypotheses.lengths.tolist(),
        hypotheses.log_probs.tolist(),
        strict=True,
    )
    return [
        [
            Candidate(order[task.from_tokens(tokens[:length])], log_prob, number)
            for tokens, length, log_prob in zip(*hypotheses_of_one, strict=True)
        ]
        for order, *hypotheses_of_one in rows
    ]


def best_candidate(task: Task, example: Example, candidates: Sequence[Candidate]) -> Candidate:
    """The candidate that is the answer to the example's instance.

    Where the task has costs (a tour's length), the cheapest. Else the answer whose probability,
    summed over the views that gave it, is largest. Valid answers are brought into canonical form,
    or into that of the example's rules; but a lone candidate stays as it is, unless there are rules
    or the task orders elements.
    """
    if len(candidates) == 1 and task.order == "given" and example.rules == CLOSED:
        return candidates[0]
    candidates = [c._replace(outputs=_canonicalize(task, example, c.outputs)) for c in candidates]
    costs = task.costs(example, [c.outputs for c in candidates])
    if costs is not None:
        return candidates[int(np.argmin(costs))]
    by_answer: dict[bytes, dict[int, Candidate]] = {}  # by view: the likeliest candidate
    for candidate in candidates:
        by_view = by_answer.setdefault(candidate.outputs.tobytes(), {})
        known = by_view.get(candidate.view)
        if known is None or candidate.log_prob > known.log_prob:
            by_view[candidate.view] = candidate
    likeliest = max(
        by_answer.values(), key=lambda by_view: logsumexp([c.log_prob for c in by_view.values()])
    )
    return max(likeliest.values(), key=lambda c: c.log_prob)


def _canonicalize(task: Task, example: Example, outputs: Indices) -> Indices:
    canonical = canonicalize_valid(task, example.inputs, outputs)
    return canonical if example.rules == CLOSED else task.obey(example, canonical)


def canonicalize_valid(task: Task, inputs: Floats, outputs: Indices) -> Indices:
    """One answer in canonical form; an invalid one, which has none, as it is."""
    if task.answer_error(len(inputs), outputs) is not None:
        return outputs
    (canonical,) = task.unpad(task.canonicalize(inputs[None], pad_answers([outputs])))
    return canonical


def settle_valid(task: Task, inputs: Floats, outputs: Indices) -> Indices:
    """One answer, decided exactly where models cannot; an invalid one as it is."""
    is_valid = task.answer_error(len(inputs), outputs) is None
    return task.settle(inputs, outputs) if is_valid else outputs


def logsumexp(log_probs: Sequence[float]) -> float:
    """The logarithm of the summed probabilities."""
    largest = max(log_probs)
    return largest + math.log(sum(math.exp(p - largest) for p in log_probs))
