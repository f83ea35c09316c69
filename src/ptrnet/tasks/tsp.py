"""The symmetric travelling salesman in the plane (V 4.4): a short closed tour of all cities.

A tour starts at city 1 and runs counter-clockwise: that is, the area that it encloses, taken with
its sign, is positive. Where that area is zero the second city has a smaller index than the last.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ptrnet.distances import NAMES
from ptrnet.geometry import comparable
from ptrnet.tasks.base import Drawing, Task, repeated
from ptrnet.types import Answers, Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.constraints import Constraint
    from ptrnet.metrics.interval import Measure


@dataclass(frozen=True)
class Tsp(Task):
    """The task `tsp`."""

    name: ClassVar[str] = "tsp"
    features: ClassVar[int] = 2
    labellers: ClassVar[tuple[str, ...]] = (
        "exact",
        "held-karp",
        "a1",
        "a2",
        "a3",
        "local-search",
    )
    closing_repeat: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
    circular: ClassVar[bool] = True
    distances: ClassVar[tuple[str, ...]] = NAMES

    def canonical(self, inputs: Floats, answers: Answers) -> Answers:
        """From city 0 on, counter-clockwise."""
        tours, lengths = answers
        n = tours.shape[1]
        if n < 2:
            return answers
        places = np.arange(n)
        start = np.argmin(tours, axis=1)[:, None]
        tours = np.take_along_axis(tours, (places + start) % n, 1)
        x, y = np.moveaxis(np.take_along_axis(comparable(inputs), tours[..., None], 1), -1, 0)
        x, y = x - x[:, :1], y - y[:, :1]
        area = (x * np.roll(y, -1, 1) - np.roll(x, -1, 1) * y).sum(1)
        backwards = (area < 0) | ((area == 0) & (tours[:, 1] > tours[:, -1]))
        return Answers(np.where(backwards[:, None], tours[:, -places % n], tours), lengths)

    def longest(self, n: int) -> int:
        return n

    @property
    def rule(self) -> "Constraint":
        from ptrnet.constraints import Tour

        return Tour()

    def complaint(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        twice = repeated(outputs, first)
        if twice or len(outputs) == n:
            return twice
        missing = np.setdiff1d(np.arange(n), outputs)[0] + first
        return f"expected each of {n} cities once, got no {missing}"

    def measure(
        self, examples: Sequence[Example], answers: Iterable[Indices]
    ) -> dict[str, "Measure"]:
        from ptrnet.metrics.tour import measure

        return measure(examples, answers)

    def is_right(self, example: Example, outputs: Indices) -> bool:
        gap = self.measure([example], [outputs])["gap"].value
        return gap is not None and gap < 1e-9  # rounding: another start sums in another order

    def costs(self, example: Example, answers: Sequence[Indices]) -> Floats:
        """Lengths; infinite for what is no tour."""
        from ptrnet.metrics.tour import is_tour, length

        return np.array(
            [
                length(example.inputs, tour, example.distance)
                if is_tour(len(example.inputs), tour)
                else np.inf
                for tour in answers
            ]
        )

    def facts(self, answered: Example) -> dict[str, float]:
        """The `length` of a valid tour."""
        assert answered.outputs is not None
        (length,) = self.costs(answered, [answered.outputs])
        return {"length": length} if length < np.inf else {}

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        return Drawing(inputs, [inputs[np.append(outputs, outputs[:1])]])


TASK = Tsp
