"""Planar Delaunay triangulation (V 4.3): triangles whose circumcircles hold no point.

Each triangle is three increasing indices; triangles stand in the order of their incenters, by x,
then by y. With `separator` the model's sequence has the slot `<ENDT>` between triangles, as the
authors' files have.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ptrnet.geometry import comparable
from ptrnet.tasks.base import Drawing, Task, setting
from ptrnet.types import Answers, Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.constraints import Constraint
    from ptrnet.metrics.interval import Measure

ENDT = 1  # the slot behind END
FLAT = 2.0**-49  # a relative distance from a line that is rounding


@dataclass(frozen=True)
class Delaunay(Task):
    """The task `delaunay`."""

    name: ClassVar[str] = "delaunay"
    features: ClassVar[int] = 2
    labellers: ClassVar[tuple[str, ...]] = ("qhull",)
    smallest: ClassVar[int] = 3
    corners: ClassVar[int] = 3
    mark: ClassVar[str] = "<ENDT>"
    symmetric: ClassVar[bool] = True

    separator: bool = setting(False, "sequences have <ENDT> between triangles")

    @property
    def specials(self) -> int:
        return 2 if self.separator else 1

    @property
    def repeats(self) -> bool:
        return True

    def unfit(self, inputs: Floats) -> str | None:
        points = comparable(inputs)
        x, y = (points - points[0]).T
        far = np.argmax(x**2 + y**2)
        aside = np.abs(x[far] * y - y[far] * x).max()
        if aside <= FLAT * max(abs(x[far]), abs(y[far])):
            return "all points lie on one line: they have no triangulation"
        return None

    def canonical(self, inputs: Floats, answers: Answers) -> Answers:
        """Increasing triples, in the order of their incenters."""
        batch = len(answers.indices)
        triangles = np.sort(answers.indices.reshape(batch, -1, 3), 2)
        real = np.arange(triangles.shape[1]) < answers.lengths[:, None] // 3
        center = _incenters(comparable(inputs), triangles)
        order = np.lexsort((center[..., 1], center[..., 0], ~real), axis=-1)
        ordered = np.take_along_axis(triangles, order[..., None], 1)
        ordered[~real] = 0
        return Answers(ordered.reshape(batch, -1), answers.lengths)

    def tokens(self, answers: Answers) -> Answers:
        if not self.separator:
            return super().tokens(answers)
        batch = len(answers.indices)
        triangles = answers.indices.reshape(batch, -1, 3) + self.specials
        marked = np.pad(triangles, ((0, 0), (0, 0), (0, 1)), constant_values=ENDT)
        tokens = marked.reshape(batch, -1)
        ends = answers.lengths // 3 * 4 - 1  # where END stands instead of the last ENDT
        tokens[np.arange(tokens.shape[1]) >= ends[:, None]] = 0
        return Answers(tokens, ends + 1)

    def answer(self, tokens: Indices) -> Indices:
        """The triangles `(t, 3)`, each once. One that was cut short repeats its last vertex."""
        found: dict[tuple[int, ...], None] = {}
        cuts = np.flatnonzero((tokens == ENDT) & self.separator)
        for part in np.split(tokens, cuts):
            vertices = super().answer(part).tolist()
            for k in range(0, len(vertices), 3):
                triple = vertices[k : k + 3]
                found[tuple(triple + triple[-1:] * (3 - len(triple)))] = None
        return np.array(list(found), np.int64).reshape(-1, 3)

    def longest(self, n: int) -> int:
        triangles = max(1, 2 * n - 5)  # Euler's formula, of a hull of three vertices
        return 4 * triangles - 1 if self.separator else 3 * triangles

    @property
    def rule(self) -> "Constraint":
        from ptrnet.constraints import Triangles

        return Triangles(self.specials)

    def complaint(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        if not len(outputs):
            return "expected at least one triangle, got none"
        triangles = np.sort(outputs, 1)
        flat = np.flatnonzero((np.diff(triangles, axis=1) == 0).any(1))
        if len(flat):
            shown = (outputs[flat[0]] + first).tolist()
            return f"triangle {flat[0] + 1}: expected three different vertices, got {shown}"
        _, where, counts = np.unique(triangles, axis=0, return_index=True, return_counts=True)
        if (counts > 1).any():
            shown = (outputs[where[counts > 1][0]] + first).tolist()
            return f"expected each triangle once, got {shown} twice"
        return None

    def measure(
        self, examples: Sequence[Example], answers: Iterable[Indices]
    ) -> dict[str, "Measure"]:
        from ptrnet.metrics.triangulation import measure

        return measure(examples, answers)

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        return Drawing(inputs, [inputs[np.append(t, t[:1])] for t in outputs])


def _incenters(points: Floats, triangles: Indices) -> Floats:
    """`(B, T, 2)` centers of the inscribed circles of `(B, T, 3)` triangles."""
    batch, count, _ = triangles.shape
    corners = np.take_along_axis(points, triangles.reshape(batch, -1, 1), 1)
    corners = corners.reshape(batch, count, 3, 2)
    # The side that faces each corner weighs it.
    facing = np.roll(corners, -1, 2) - np.roll(corners, 1, 2)
    sides = np.hypot(facing[..., 0], facing[..., 1])[..., None]
    around = np.maximum(sides.sum(2), np.finfo(float).tiny)  # padding has no sides
    return (sides * corners).sum(2) / around


TASK = Delaunay
