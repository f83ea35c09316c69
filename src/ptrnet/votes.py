"""One answer out of several: the best by the task's own measure, or else the one most likely."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ptrnet.data.padding import pad_answers
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices


class Candidate(NamedTuple):
    """An answer that a decoder found."""

    outputs: Indices
    log_prob: float
    view: int  # the number of the look at the instance that it was found at


def best(task: Task, example: Example, candidates: Sequence[Candidate]) -> Candidate:
    """The candidate to give.

    Where the task measures answers by themselves (a tour's length) the best of them. Else views
    vote: the probability of an answer is added up over the views in which it was found. Answers
    that are valid are given in the canonical order, but for a lone one of the instance as it is.
    """
    if len(candidates) == 1 and task.order == "given":
        return candidates[0]
    candidates = [
        c._replace(outputs=canonical(task, example.inputs, c.outputs)) for c in candidates
    ]
    costs = task.costs(example, [c.outputs for c in candidates])
    if costs is not None:
        return candidates[int(np.argmin(costs))]
    found: dict[bytes, dict[int, Candidate]] = {}
    for candidate in candidates:
        views = found.setdefault(candidate.outputs.tobytes(), {})
        known = views.get(candidate.view)
        if known is None or candidate.log_prob > known.log_prob:
            views[candidate.view] = candidate
    likely = max(found.values(), key=lambda views: logsumexp([c.log_prob for c in views.values()]))
    return max(likely.values(), key=lambda c: c.log_prob)


def canonical(task: Task, inputs: Floats, outputs: Indices) -> Indices:
    """The same for answers to an instance that mean the same; as it is where it is none."""
    if task.answer_error(len(inputs), outputs) is not None:
        return outputs
    (found,) = task.unpad(task.canonicalize(inputs[None], pad_answers([outputs])))
    return found


def logsumexp(log_probs: Sequence[float]) -> float:
    """The logarithm of the sum."""
    most = max(log_probs)
    return most + math.log(sum(math.exp(p - most) for p in log_probs))
