"""The symmetric travelling salesman in the plane (V 4.4): a short closed tour of all cities.

A tour starts at the first city of the instance and runs counter-clockwise: its signed area is
positive. Where that area is zero, its second city has a smaller index than its last.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ptrnet.geometry.distances import PLANAR
from ptrnet.geometry.predicates import area_signs
from ptrnet.tasks.base import Drawing, Task, duplicate_error
from ptrnet.types import Answers, Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.constraints import Constraint
    from ptrnet.metrics.interval import Scores


@dataclass(frozen=True)
class Tsp(Task):
    """The task `tsp` (V 4.4): a short closed tour of all cities of the plane.

    An instance is `(n, 2)`, an answer `(n,)`: every city once, from the first one on,
    counter-clockwise. Metrics: `length`, the mean of closed tours; `gap`, to the examples' own
    tours, paired, as a fraction; `valid`, the share of answers that are tours.
    """

    name: ClassVar[str] = "tsp"
    labellers: ClassVar[tuple[str, ...]] = (
        "exact",
        "held-karp",
        "a1",
        "a2",
        "a3",
        "local-search",
    )
    symmetric: ClassVar[bool] = True
    circular: ClassVar[bool] = True
    may_be_unproved: ClassVar[bool] = True
    distances: ClassVar[tuple[str, ...]] = PLANAR

    @property
    def num_features(self) -> int:
        return 2

    @property
    def depends_on_indices(self) -> bool:
        return self.order == "given"

    def canonicalize(self, inputs: Floats, answers: Answers) -> Answers:
        """Each tour from city 0 on, counter-clockwise."""
        tours, lengths = answers
        n = tours.shape[1]
        if n < 2:
            return answers
        steps = np.arange(n)
        start = np.argmin(tours, axis=1)[:, None]
        tours = np.take_along_axis(tours, (steps + start) % n, 1)
        signs = area_signs(inputs, tours, lengths)
        backwards = (signs < 0) | ((signs == 0) & (tours[:, 1] > tours[:, -1]))
        return Answers(np.where(backwards[:, None], tours[:, -steps % n], tours), lengths)

    def max_length(self, n: int) -> int:
        return n

    @property
    def answer(self) -> Literal["any", "all", "one"]:
        return "all"

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

    def is_correct(self, example: Example, outputs: Indices) -> bool:
        (gap,) = self.score([example], [outputs])["gap"]
        return bool(gap < 1e-9)  # rounding: another start sums in another order

    def costs(self, example: Example, answers: Sequence[Indices]) -> Floats:
        """The lengths of tours; infinite for what is no tour."""
        from ptrnet.metrics.sequence import is_permutation
        from ptrnet.metrics.tour import length

        return np.array(
            [
                length(example.inputs, tour, example.distance)
                if is_permutation(tour, len(example.inputs))
                else np.inf
                for tour in answers
            ]
        )

    def answer_stats(self, answered: Example) -> dict[str, float]:
        """The `length` of a valid tour."""
        assert answered.outputs is not None
        (length,) = self.costs(answered, [answered.outputs])
        return {"length": length} if length < np.inf else {}

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        return Drawing(inputs, [inputs[np.append(outputs, outputs[:1])]])


TASK = Tsp
