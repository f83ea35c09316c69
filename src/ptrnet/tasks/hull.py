"""Planar convex hull (V 4.2): the vertices of the hull, counter-clockwise.

Where the list starts is a setting, because the papers differ: `leftmost` (C: the smallest x),
`lowest-index` (V: the smallest index), `lower-left` (W: nearest the lower-left corner). With
`closed` the model's sequence repeats its first vertex at the end, as V's figure does.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ptrnet.geometry import comparable
from ptrnet.tasks.base import Drawing, Task, repeated, setting
from ptrnet.types import Answers, Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.constraints import Constraint
    from ptrnet.metrics.interval import Measure


@dataclass(frozen=True)
class Hull(Task):
    """The task `hull`."""

    name: ClassVar[str] = "hull"
    features: ClassVar[int] = 2
    labellers: ClassVar[tuple[str, ...]] = ("monotone-chain",)
    subset: ClassVar[bool] = True
    closing_repeat: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True

    start: Literal["leftmost", "lowest-index", "lower-left"] = setting(
        "leftmost", "the vertex that answers start at"
    )
    closed: bool = setting(False, "sequences repeat their first vertex at the end")

    @property
    def repeats(self) -> bool:
        return self.closed

    def canonical(self, inputs: Floats, answers: Answers) -> Answers:
        """Counter-clockwise, from the start that the settings ask for."""
        indices, lengths = _counter_clockwise(inputs, answers)
        width = indices.shape[1]
        inside = np.arange(width) < lengths[:, None]
        vertices = np.take_along_axis(inputs, indices[..., None], axis=1)
        keys: tuple[np.ndarray, ...]
        if self.start == "leftmost":
            keys = (vertices[..., 1], vertices[..., 0])
        elif self.start == "lowest-index":
            keys = (indices,)
        else:
            square = self.scaled(inputs)
            corner = np.take_along_axis(square, indices[..., None], axis=1)
            keys = (indices, (corner**2).sum(-1))
        first = np.lexsort((*keys, ~inside), axis=-1)[:, :1]
        turned = (np.arange(width) + first) % np.maximum(lengths, 1)[:, None]
        return Answers(np.where(inside, np.take_along_axis(indices, turned, 1), 0), lengths)

    def tokens(self, answers: Answers) -> Answers:
        if not self.closed:
            return super().tokens(answers)
        indices, lengths = answers
        longer = np.pad(indices, ((0, 0), (0, 1)))
        longer[np.arange(len(longer)), lengths] = indices[:, 0]
        return super().tokens(Answers(longer, lengths + 1))

    def answer(self, tokens: Indices) -> Indices:
        vertices = super().answer(tokens)
        closes = self.closed and len(vertices) > 1 and vertices[0] == vertices[-1]
        return vertices[:-1] if closes else vertices

    def longest(self, n: int) -> int:
        return n + self.closed

    @property
    def rule(self) -> "Constraint":
        from ptrnet.constraints import ClosedSubset, Subset

        return ClosedSubset() if self.closed else Subset()

    def complaint(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        if not len(outputs):
            return "expected at least one vertex, got none"
        return repeated(outputs, first)

    def measure(
        self, examples: Sequence[Example], answers: Iterable[Indices]
    ) -> dict[str, "Measure"]:
        from ptrnet.metrics.polygon import measure

        return measure(examples, answers)

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        return Drawing(inputs, [inputs[np.append(outputs, outputs[:1])]])


def _counter_clockwise(inputs: Floats, answers: Answers) -> Answers:
    """The answers, those that run clockwise reversed."""
    indices, lengths = answers
    steps = np.arange(indices.shape[1])
    inside = steps < lengths[:, None]
    onward = np.where(steps + 1 < lengths[:, None], steps + 1, 0)
    points = comparable(inputs)
    x, y = np.moveaxis(np.take_along_axis(points, indices[..., None], axis=1), -1, 0)
    x, y = x - x[:, :1], y - y[:, :1]  # far from the origin the sum would lose its sign
    turns = x * np.take_along_axis(y, onward, 1) - np.take_along_axis(x, onward, 1) * y
    clockwise = np.where(inside, turns, 0).sum(1) < 0
    back = np.where(inside, lengths[:, None] - 1 - steps, steps)
    reversed_ = np.take_along_axis(indices, back, 1)
    return Answers(np.where(clockwise[:, None], reversed_, indices), lengths)


TASK = Hull
