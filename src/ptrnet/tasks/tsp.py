"""The travelling salesman in the plane: a short closed tour of all cities.

The task is that of Vinyals et al. 2015, section 4.4.

A tour starts at the first city of the instance and runs counter-clockwise: its signed area is
positive. If the signed area is zero, or the cities are not points of the plane, the second city has
a smaller index than the last city. A tour of directed distances keeps its direction.

Some labellers also take points in space, matrices of distances and fixed edges. Networks do not.
`TourRules` say where a tour begins and ends, whether the tour is open, and which edges are fixed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ptrnet.errors import InputError
from ptrnet.geometry.distances import EUCLIDEAN, EXPLICIT, PLANAR, along, is_directed, matrix
from ptrnet.geometry.points import scale_by_power_of_two
from ptrnet.geometry.predicates import area_signs
from ptrnet.tasks.base import Drawing, Facts, Task, duplicate_error
from ptrnet.types import CLOSED, Ends, Example, Floats, Indices, TourRules

if TYPE_CHECKING:
    from ptrnet.constraints import Constraint
    from ptrnet.metrics.interval import Scores

MAX_ENDS = 32  # maximum number of cities that are tried as the free end of a path


@dataclass(frozen=True)
class Tsp(Task):
    """The task `tsp`: a short closed tour of all cities of the plane.

    An instance is `(n, 2)`, an answer `(n,)`: every city once, starting at city 0,
    counter-clockwise.

    Metrics:

    - `length`: the mean length of valid tours, with the way back unless tours are open
    - `gap`: how much longer the tours are than the examples' tours, as a fraction
    - `valid`: the share of answers that are tours
    """

    name: ClassVar[str] = "tsp"

    @cached_property
    def facts(self) -> Facts:
        return Facts(
            num_features=2,
            labellers=("exact", "held-karp", "local-search"),
            may_be_unproved=True,
            distances=PLANAR,
            takes_matrices=True,
            answer="all",
            symmetric=True,
            circular=True,
            depends_on_indices=self.order == "given",
            cost_name="length",
        )

    def canonicalize(
        self,
        inputs: Floats,
        answers: Sequence[Indices],
        distance: str = EUCLIDEAN,
        rules: TourRules = CLOSED,
    ) -> Sequence[Indices]:
        """Return each tour counter-clockwise. Tours begin at city 0 unless an end is fixed.

        Open paths, and tours with both ends fixed, are returned unchanged.
        """
        tours = np.stack(answers)
        count, n = tours.shape
        if n < 2 or rules.is_open or None not in (rules.start, rules.end):
            return answers  # labellers return such tours from their start to their end
        steps = np.arange(n)
        tours = np.take_along_axis(tours, (steps + np.argmin(tours, axis=1)[:, None]) % n, 1)
        if distance in PLANAR:
            signs = area_signs(inputs, tours, np.full(count, n))
        else:  # a tour of directed distances must keep its direction
            directed = is_directed(inputs) if distance == EXPLICIT else np.zeros(count, bool)
            signs = directed.astype(np.int64)
        backwards = (signs < 0) | ((signs == 0) & (tours[:, 1] > tours[:, -1]))
        tours = np.where(backwards[:, None], tours[:, -steps % n], tours)
        if rules.start is not None:
            tours = np.stack([np.roll(t, -int(np.argmax(t == rules.start))) for t in tours])
        if rules.end is not None:
            tours = np.stack([np.roll(t, -int(np.argmax(t == rules.end)) - 1) for t in tours])
        return list(tours)

    def beginning(self, example: Example) -> list[int]:
        """Return the required last and first city; no city if the rules do not fix both.

        A tour that begins with these two cities has the edge between them. So `obey` can rotate
        the tour to begin at the required first city and end at the required last city.
        """
        start, end = example.rules.start, example.rules.end
        return [] if start is None or end is None else [end, start]

    def obey(self, example: Example, outputs: Indices) -> Indices:
        """Return the tour, changed so that it obeys the rules.

        A tour with fixed ends is rotated, and reversed if necessary. An open path with two free
        ends is the tour without its longest edge. If one end of the path is fixed, we remove the
        longer of the two edges at the fixed city instead.
        """
        (start, end, is_open, _), n = example.rules, len(example.inputs)
        if n < 2 or self.answer_error(n, outputs) is not None:
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
        if fixed is None:
            is_backwards = path[0] > path[-1]
        else:
            is_backwards = path[0 if end is None else -1] != fixed
        return path[::-1].copy() if is_backwards else path

    def with_free_end(self, example: Example, outputs: Indices, end: str) -> list[Example]:
        """Return copies of the example. Each copy fixes a different city at `end`, the free end.

        These cities are the answer's city at this end, and the cities nearest to it, at most
        `MAX_ENDS` in all. At the other end, all copies have the answer's city.
        """
        rules, n = example.rules, len(example.inputs)
        is_free = rules.start is None if end == "start" else rules.end is None
        if not rules.is_open or not is_free or self.answer_error(n, outputs) is not None:
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

    def unreadable(self, example: Example) -> str | None:
        what = ""
        if example.distance == EXPLICIT:
            what = "a matrix of distances; networks read coordinates"
        elif example.distance not in PLANAR:
            what = "points of space; networks read the plane"
        elif example.rules.fixed:
            what = "fixed edges, which networks do not keep"
        return what and f"{what}; ptrnet label tsp answers it by an algorithm"

    def improve(self, example: Example, outputs: Indices) -> Indices:
        """Return the tour after 2-opt and Or-opt moves, in the distances and rules of its file."""
        from ptrnet.labellers import local_search
        from ptrnet.labellers.rules import has_way_back, reduce, restore, with_fixed_edges

        points, n = example.inputs, len(example.inputs)
        if not 3 < n <= local_search.MAX_MATRIX:
            return outputs
        # Search among the cities from left to right, so that their indices do not matter.
        order = np.lexsort(points.T[::-1])
        place = np.argsort(order)
        start, end = (None if k is None else int(place[k]) for k in example.rules[:2])
        rules = TourRules(start, end, example.rules.is_open)
        points = points[order]
        if example.distance == EUCLIDEAN:
            points = scale_by_power_of_two(points)
        problem = reduce(matrix(points, example.distance), rules, directed=False)
        tour = place[outputs]
        tour = np.append(tour, n) if has_way_back(n, rules) else tour
        better = local_search.improved(with_fixed_edges(problem), tour)
        if better is tour:
            return outputs
        better = order[restore(better, n, rules, directed=False)]
        if rules == CLOSED:
            (better,) = self.canonicalize(example.inputs[None], [better])
        return better

    def max_length(self, n: int) -> int:
        return n

    def build_constraint(self) -> "Constraint":
        from ptrnet.constraints import Tour

        return Tour()

    def answer_error(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        duplicate = duplicate_error(outputs, first)
        if duplicate or len(outputs) == n:
            return duplicate
        missing = np.setdiff1d(np.arange(n), outputs)[0] + first
        return f"expected each of {n} cities once, got no {missing}"

    def score(self, examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, "Scores"]:
        from ptrnet.metrics.tour import score

        return score(examples, answers)

    def costs(self, example: Example, answers: Sequence[Indices]) -> Floats:
        """Return the lengths of tours. Answers that are not tours have infinite length."""
        from ptrnet.metrics.sequence import is_permutation
        from ptrnet.metrics.tour import length

        return np.array(
            [
                length(example.inputs, tour, example.distance, example.rules.is_open)
                if is_permutation(tour, len(example.inputs))
                else np.inf
                for tour in answers
            ]
        )

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        return Drawing(inputs, [inputs[np.append(outputs, outputs[:1])]])


def with_ends(examples: Iterable[Example], task: Task, ends: Ends) -> Iterable[Example]:
    """Return the examples, with rules for where their tours begin and end.

    Raises:
        InputError: the task is not `tsp`, a city does not exist, or no tour obeys the rules.
    """
    check_ends(task, ends)
    return examples if ends == Ends() else (_with_ends(example, ends) for example in examples)


def check_ends(task: Task, ends: Ends) -> None:
    """Raise InputError if ends are given, but the task is not `tsp`."""
    if ends != Ends() and task.name != Tsp.name:
        raise InputError(f"start, end and open need task tsp, got {task.name}")


def _with_ends(example: Example, ends: Ends) -> Example:
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


TASK = Tsp
