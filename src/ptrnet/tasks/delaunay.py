"""Planar Delaunay triangulation: triangles whose circumcircles contain no point.

The task is that of Vinyals et al. 2015, section 4.3.

Each triangle is three increasing indices. Triangles are sorted by their incenters, by x and then by
y. With `separator`, a model's sequence has the slot `<ENDT>` between triangles, as in the files of
Vinyals et al.

With `sequence = "apexes"`, the model builds the triangulation edge by edge instead. The first edge
is on the hull: it starts at the lexicographically smallest point and has all points on its left.
This edge is the first in a queue of open edges. An edge is open if the model has not decided which
triangle is on its left. The queue is first in, first out. For each edge of the queue, the model
gives the apex of the triangle on the left of the edge. Then the other sides of this triangle join
the queue if they are open (`labellers/edge_queue.py`). If there is no triangle, the model gives the
slot NONE. Triangles are counter-clockwise, in the order in which the queue reaches them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ptrnet.errors import InputError
from ptrnet.geometry import first_equal, scale_by_power_of_two
from ptrnet.geometry.predicates import (
    Predicates,
    circles_are_nearly_empty,
    merge_near_points,
    triangles_are_near,
)
from ptrnet.settings import setting
from ptrnet.tasks.base import Drawing, Facts, Task
from ptrnet.types import END, NONE, Example, Floats, Indices, pad, real, trim

if TYPE_CHECKING:
    from ptrnet.metrics import Scores

MAX_SETTLED = 2**20  # maximum product of triangles and points, for which `_settle` takes 200 MB
ENDT = 1  # the special slot between triangles


@dataclass(frozen=True)
class Delaunay(Task):
    """The task `delaunay`: triangles whose circumcircles contain no point.

    An instance is `(n, 2)` with n >= 3. An answer is `(t, 3)`, the vertices of each triangle.

    Metrics:

    - `accuracy`: the share of answers with exactly the true triangles
    - `triangle_coverage`: the share of the true triangles that are in the answer

    Args:
        separator: whether token sequences have `<ENDT>` between triangles, as in the files of
            Vinyals et al.
        sequence: the form of token sequences: `triangles`, three tokens for each triangle; or
            `apexes`, one token for each open edge.

    Examples:
        >>> inputs, outputs = ptrnet.label("delaunay", [[0, 0], [1, 0], [0, 1], [1, 1.5]])
        >>> outputs
        array([[0, 1, 2],
               [1, 2, 3]])
    """

    name: ClassVar[str] = "delaunay"

    separator: bool = setting(False, "sequences have <ENDT> between triangles")
    sequence: Literal["triangles", "apexes"] = setting(
        "triangles", "three vertices of each triangle, or one apex for each open edge"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.separator and self.sequence == "apexes":
            raise InputError("separator: expected no, because a sequence of apexes has none")

    @cached_property
    def facts(self) -> Facts:
        special = {"apexes": ("none",)}.get(self.sequence, ("<ENDT>",) * self.separator)
        return Facts(
            num_features=2,
            machine="apexes" if self.sequence == "apexes" else "triangles",
            labellers=("qhull",),
            min_elements=3,
            item_size=3,
            repeats=True,
            keeps_equal=False,
            special_names=("end", *special),
            symmetric=True,
            settle=self._settle,
            depends_on_indices=self.order == "given" and self.sequence == "triangles",
        )

    def instance_error(self, inputs: Floats) -> str | None:
        points = scale_by_power_of_two(inputs)
        end = np.argmax(np.abs(points - points[0]).sum(1))  # the point farthest from point 0
        line = np.array([0]), np.array([end])
        if Predicates(inputs).turn_beyond_rounding(*line, np.arange(len(inputs))).any():
            return None
        return "all points lie on one line: they have no triangulation"

    def normalize(self, inputs: Floats) -> Floats:
        """Scale instances to the unit square, and merge points that are nearly equal."""
        return merge_near_points(super().normalize(inputs))

    def canonicalize(self, inputs: Floats, answers: Sequence[Indices]) -> Sequence[Indices]:
        """Sort the indices of each triangle, and the triangles by incenters.

        For sequences of apexes, put the triangles into the order of `traverse` instead.
        """
        if self.sequence == "apexes":
            return _in_order_of_edges(scale_by_power_of_two(inputs), answers)
        indices, lengths = pad(answers)
        counts, triangles = lengths // 3, np.sort(indices.reshape(len(answers), -1, 3), 2)
        center = _incenters(scale_by_power_of_two(inputs), triangles)
        is_padding = ~real(counts, triangles.shape[1])
        order = np.lexsort((center[..., 1], center[..., 0], is_padding), axis=-1)
        return trim(np.take_along_axis(triangles, order[..., None], 1), counts)

    def to_tokens(self, answers: Sequence[Indices]) -> list[Indices]:
        """See `Task`. A sequence of apexes contains only triangles connected to the first edge."""
        if self.sequence == "apexes":
            return _apex_tokens(answers)
        if not self.separator:
            return super().to_tokens(answers)
        sequences = []
        for triangles in answers:
            separated = np.pad(
                triangles + self.facts.num_specials, ((0, 0), (0, 1)), constant_values=ENDT
            )
            separated[-1:, -1] = END  # replaces the last ENDT
            sequences.append(separated.ravel())
        return sequences

    def from_tokens(self, tokens: Indices) -> Indices:
        """Return the triangles `(t, 3)` of a sequence of tokens.

        An incomplete triangle repeats its last vertex, and so counts as wrong. If a triangle is
        repeated with the same order of vertices, it is returned once. For a sequence of apexes, all
        triangles are returned, including repeated triangles.
        """
        if self.sequence == "apexes":
            from ptrnet.labellers.edge_queue import triangles_of

            named = triangles_of((tokens - self.facts.num_specials).tolist())
            return np.array(named, np.int64).reshape(-1, 3)
        triangles: dict[tuple[int, ...], None] = {}  # a dict keeps the order of triangles
        separators = np.flatnonzero((tokens == ENDT) & self.separator)
        for part in np.split(tokens, separators):
            vertices = super().from_tokens(part).tolist()
            for k in range(0, len(vertices), 3):
                triangle = vertices[k : k + 3]
                triangles[tuple(triangle + triangle[-1:] * (3 - len(triangle)))] = None
        return np.array(list(triangles), np.int64).reshape(-1, 3)

    def max_length(self, n: int) -> int:
        triangles = max(1, 2 * n - 5)  # Euler's formula for a hull of three vertices
        if self.sequence == "apexes":
            # The two ends of the first edge, then one token for each edge of the queue: the first
            # edge, and at most two more for each triangle.
            return 2 * triangles + 3
        return 4 * triangles - 1 if self.separator else 3 * triangles

    def answer_error(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        if not len(outputs):
            return "expected at least one triangle, got none"
        triangles = np.sort(outputs, 1)
        degenerate = np.flatnonzero((np.diff(triangles, axis=1) == 0).any(1))
        if len(degenerate):
            k = degenerate[0]
            got = (outputs[k] + first).tolist()
            return f"triangle {k + 1}: expected three different vertices, got {got}"
        _, position, counts = np.unique(triangles, axis=0, return_index=True, return_counts=True)
        if (counts > 1).any():
            got = (outputs[position[counts > 1][0]] + first).tolist()
            return f"expected each triangle once, got {got} twice"
        return None

    def _settle(self, inputs: Floats, outputs: Indices) -> Indices:
        """Return the exact triangulation if it differs from the answer by less than RESOLUTION.

        The difference is less than RESOLUTION if moving each point by at most RESOLUTION could
        make the answer right. If the difference is larger, return the answer.
        """
        from ptrnet import labellers
        from ptrnet.metrics.triangulation import is_delaunay

        if len(outputs) * len(inputs) > MAX_SETTLED:
            return outputs
        first = first_equal(inputs)
        has_all_vertices = np.isin(first, first[outputs]).all()
        if has_all_vertices and is_delaunay(inputs, outputs):
            return outputs
        points = super().normalize(inputs)
        if not circles_are_nearly_empty(points, outputs):
            return outputs
        (exact,) = labellers.label(self, inputs[None])
        return exact if triangles_are_near(points, outputs, exact) else outputs

    def score(self, examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, "Scores"]:
        from ptrnet.metrics.triangulation import score

        return score(examples, answers)

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        return Drawing(inputs, [inputs[np.append(t, t[:1])] for t in outputs])


def _in_order_of_edges(points: Floats, answers: Sequence[Indices]) -> list[Indices]:
    """Return triangles in the order in which `traverse` reaches them, then unreached triangles."""
    from ptrnet.labellers.edge_queue import traverse  # compiles kernels

    rows = []
    for corners, triangles in zip(points, answers, strict=True):
        ordered, _ = traverse(triangles, corners)
        if len(ordered) < len(triangles):
            named = {tuple(sorted(t)) for t in ordered.tolist()}
            is_named = [tuple(sorted(t)) in named for t in triangles.tolist()]
            ordered = np.concatenate([ordered, triangles[~np.array(is_named)]])
        rows.append(ordered)
    return rows


def _apex_tokens(answers: Sequence[Indices]) -> list[Indices]:
    """Return the apexes of each answer as tokens, including NONE and END."""
    from ptrnet.labellers.edge_queue import NO_APEX, traverse

    rows = []
    for triangles in answers:
        _, apexes = traverse(triangles, np.empty((0, 2)))
        rows.append(np.append(np.where(apexes == NO_APEX, NONE, apexes + NONE + 1), END))
    return rows


def _incenters(points: Floats, triangles: Indices) -> Floats:
    """The centers `(B, T, 2)` of the inscribed circles of triangles `(B, T, 3)`.

    A center is the mean of the vertices, each weighted by the length of the opposite side.
    """
    batch, count, _ = triangles.shape
    vertices = np.take_along_axis(points, triangles.reshape(batch, -1, 1), 1)
    vertices = vertices.reshape(batch, count, 3, 2)
    opposite = np.roll(vertices, -1, 2) - np.roll(vertices, 1, 2)
    lengths = np.hypot(opposite[..., 0], opposite[..., 1])[..., None]
    perimeters = np.maximum(lengths.sum(2), np.finfo(float).tiny)  # avoid 0 / 0 on padding
    return (lengths * vertices).sum(2) / perimeters


TASK = Delaunay
