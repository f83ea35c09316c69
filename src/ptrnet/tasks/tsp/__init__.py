"""The travelling salesman in the plane: a short closed tour of all cities.

The task is that of Vinyals et al. 2015, section 4.4.

A tour starts at the first city of the instance and runs counter-clockwise: its signed area is
positive. If the signed area is zero, or the cities are not points of the plane, the second city has
a smaller index than the last city. A tour of directed distances keeps its direction.

Some labellers also take points in space, matrices of distances and fixed edges. Networks do not.
`TourRules` say where a tour begins and ends, whether the tour is open, and which edges are fixed
(`ends.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ptrnet.geometry import scale_by_power_of_two
from ptrnet.geometry.distances import EUCLIDEAN, EXPLICIT, PLANAR, is_directed, matrix
from ptrnet.geometry.predicates import area_signs
from ptrnet.tasks.base import Drawing, Facts, Task, duplicate_error
from ptrnet.tasks.tsp.ends import ENDS
from ptrnet.types import CLOSED, Example, Floats, Indices, TourRules

if TYPE_CHECKING:
    from ptrnet.metrics import Scores


def improve(example: Example, outputs: Indices) -> Indices:
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
    return order[restore(better, n, rules, directed=False)]


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
            machine="tour",
            labellers=("exact", "held-karp", "local-search"),
            may_be_unproved=True,
            distances=PLANAR,
            takes_matrices=True,
            answer="all",
            symmetric=True,
            circular=True,
            depends_on_indices=self.order == "given",
            cost_name="length",
            ends=ENDS,
            improve=self._improve,
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

    def _improve(self, example: Example, outputs: Indices) -> Indices:
        better = improve(example, outputs)
        if better is not outputs and example.rules == CLOSED:
            (better,) = self.canonicalize(example.inputs[None], [better])
        return better

    def max_length(self, n: int) -> int:
        return n

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
        from ptrnet.metrics.tour import length
        from ptrnet.types import is_permutation

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


TASK = Tsp
