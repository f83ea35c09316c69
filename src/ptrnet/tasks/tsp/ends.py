"""Where tours begin and end: what a user asks for, and how a network's tours come to obey it.

A network gives closed tours that may begin anywhere. A tour whose first and last city are both
required has an edge between them, so the network has to begin with these two cities. All other
rules are obeyed afterwards: the tour is rotated, or opened at its longest edge. Then the solver
tries other cities as the free ends of an open path.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ptrnet.errors import InputError
from ptrnet.geometry.distances import EXPLICIT, PLANAR, along, is_directed
from ptrnet.tasks.base import Choice, TourEnds
from ptrnet.types import Ends, Example, Indices, TourRules, is_permutation

MAX_ENDS = 32  # maximum number of cities that are tried as the free end of a path


def beginning(example: Example) -> list[int]:
    """Return the required last and first city; no city if the rules do not fix both.

    A tour that begins with these two cities has the edge between them. So `obey` can rotate
    the tour to begin at the required first city and end at the required last city.
    """
    start, end, *_ = example.rules
    return [] if start is None or end is None else [end, start]


def obey(example: Example, outputs: Indices) -> Indices:
    """Return the tour, changed so that it obeys the rules.

    A tour with fixed ends is rotated, and reversed if necessary. An open path with two free
    ends is the tour without its longest edge. If one end of the path is fixed, we remove the
    longer of the two edges at the fixed city instead.
    """
    (start, end, is_open, _), n = example.rules, len(example.inputs)
    if n < 2 or not is_permutation(outputs, n):
        return outputs
    if start is not None and end is not None:
        tour = np.roll(outputs, -int(np.argmax(outputs == start)))
        return tour if tour[-1] == end else np.roll(tour[::-1], 1)
    fixed = start if end is None else end
    if not is_open:
        turn = int(np.argmax(outputs == fixed)) + (start is None)
        return np.roll(outputs, -turn)
    legs = along(example.inputs, np.append(outputs, outputs[:1]), example.distance)
    if fixed is not None:
        place = int(np.argmax(outputs == fixed))
        legs[np.setdiff1d(np.arange(n), [place, (place - 1) % n])] = -np.inf
    path = np.roll(outputs, -int(np.argmax(legs)) - 1)
    at_fixed = path[0 if end is None else -1]
    is_backwards = path[0] > path[-1] if fixed is None else at_fixed != fixed
    return path[::-1].copy() if is_backwards else path


def with_free_end(example: Example, outputs: Indices, end: str) -> list[Example]:
    """Return copies of the example. Each copy fixes a different city at `end`, the free end.

    These cities are the answer's city at this end, and the cities nearest to it, at most
    `MAX_ENDS` in all. At the other end, all copies have the answer's city.
    """
    rules, n = example.rules, len(example.inputs)
    is_free = rules.start is None if end == "start" else rules.end is None
    if not rules.is_open or not is_free or not is_permutation(outputs, n):
        return []
    free, kept = outputs[[0, -1]] if end == "start" else outputs[[-1, 0]]
    path = np.stack([np.full(n, free), np.arange(n)], 1).ravel()  # from `free` to each city
    legs = along(example.inputs, path, example.distance)[::2]
    legs[free] = 0
    near = np.argsort(legs, kind="stable")
    near = near[near != kept][:MAX_ENDS].tolist()
    kept = int(kept)
    ends = [(city, kept) if end == "start" else (kept, city) for city in near]
    return [example.replace(rules=TourRules(first, last, True)) for first, last in ends]


def with_best_ends(
    example: Example, best: Choice, answer: Callable[[list[Example]], Iterable[Sequence[Choice]]]
) -> Choice:
    """Return the best path after trying other cities at each free end of an open path.

    If the example does not ask for an open path, return `best`, the best answer so far. `answer`
    returns a network's answers to each copy of the example, which has other rules.
    """
    for end in ("end", "start"):
        trials = with_free_end(example, best[0], end)
        choices = [best]
        for trial, found in zip(trials, answer(trials), strict=True):
            choices += [(obey(trial, outputs), log_prob) for outputs, log_prob in found]
        best = min(choices, key=lambda choice: _length(example, choice[0]))
    return (obey(example, best[0]), best[1]) if example.rules.is_open else best


def _length(example: Example, outputs: Indices) -> float:
    from ptrnet.metrics.tour import length

    if not is_permutation(outputs, len(example.inputs)):
        return np.inf
    return length(example.inputs, outputs, example.distance, example.rules.is_open)


def unreadable(example: Example) -> str:
    """Return why networks cannot answer an instance, though algorithms can; empty if they can."""
    what = ""
    if example.distance == EXPLICIT:
        what = "a matrix of distances; networks read coordinates"
    elif example.distance not in PLANAR:
        what = "points of space; networks read the plane"
    elif example.rules.fixed:
        what = "fixed edges, which networks do not keep"
    return what and f"{what}; ptrnet label tsp answers it by an algorithm"


def required(example: Example, ends: Ends) -> Example:
    """Return the example, with the ends that a user asks for as rules.

    Raises:
        InputError: a city does not exist, or no tour obeys the rules.
    """
    n = len(example.inputs)
    ids = example.nodes.ids if example.nodes else range(n)
    for name, city in (("start", ends.start), ("end", ends.end)):
        if city is not None and city not in ids:
            expected = "an id of the file" if example.nodes else f"0 to {n - 1}"
            raise InputError(f"{example.source}: {name}: expected {expected}, got {city}")
    first, last = (None if city is None else ids.index(city) for city in ends[:2])
    if first is not None and first == last and n > 1:
        raise InputError(f"{example.source}: end: expected another city than start, got {ends.end}")
    rules = TourRules(first, last, ends.is_open, example.rules.fixed)
    # Under other rules, the example's answer is the answer to another question.
    outputs = example.outputs if rules == example.rules else None
    return checked_rules(example.replace(rules=rules, outputs=outputs))


def checked_rules(example: Example) -> Example:
    """Return the example. Raises InputError if no tour obeys its rules."""
    from ptrnet.labellers.rules import reduce

    rules, n = example.rules, len(example.inputs)
    if rules.fixed and n > 1:
        directed = example.distance == EXPLICIT and bool(is_directed(example.inputs[None])[0])
        try:
            reduce(np.zeros((n, n)), rules, directed, example.nodes.ids if example.nodes else ())
        except InputError as error:
            raise InputError(f"{example.source}: no tour obeys the fixed edges: {error}") from None
    return example


ENDS = TourEnds(required, beginning, obey, with_best_ends, unreadable)
