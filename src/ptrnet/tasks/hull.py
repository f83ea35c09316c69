"""Planar convex hull: the vertices of the hull, counter-clockwise (Vinyals et al. 2015, 4.2).

The first vertex is a setting, because the papers differ:

- `leftmost`: the vertex with the smallest x (Chan and Sedoc 2016)
- `lowest-index`: the vertex with the smallest index (Vinyals et al. 2015)
- `lower-left`: the vertex nearest to the lower-left corner (Wang and Wang 2016)

With `closed`, a model's sequence repeats the first vertex at the end, as in figure 1 of Vinyals et
al. (2015).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ptrnet.geometry.predicates import Predicates, area_signs, merge_near_points, rings_are_near
from ptrnet.tasks.base import Drawing, Facts, Task, duplicate_error, setting
from ptrnet.types import Example, Floats, Indices, pad, real, trim

if TYPE_CHECKING:
    from ptrnet.metrics import Scores


@dataclass(frozen=True)
class Hull(Task):
    """The task `hull`: the vertices of the convex hull of points in the plane.

    An instance is `(n, 2)`. An answer is `(m,)`, counter-clockwise, and does not repeat its first
    vertex at the end.

    Metrics:

    - `accuracy`: the share of answers that equal the true polygon
    - `simple`: the share of answers that are simple polygons
    - `area`: the share of the true hull's area that simple answers cover

    Args:
        start: the first vertex: `leftmost` is the vertex with the smallest x, `lowest-index` the
            vertex with the smallest index, and `lower-left` the vertex nearest to the lower-left
            corner.
        closed: whether token sequences repeat the first vertex at the end.

    Examples:
        >>> inputs, outputs = ptrnet.label("hull", [[0, 0], [1, 0], [0, 1], [0.2, 0.2]])
        >>> outputs
        array([0, 1, 2])
    """

    name: ClassVar[str] = "hull"

    start: Literal["leftmost", "lowest-index", "lower-left"] = setting(
        "leftmost", "the first vertex of an answer"
    )
    closed: bool = setting(False, "sequences repeat their first vertex at the end")

    @cached_property
    def facts(self) -> Facts:
        return Facts(
            num_features=2,
            machine="closed-subset" if self.closed else "subset",
            labellers=("monotone-chain",),
            repeats=self.closed,
            symmetric=True,
            decomposable=True,
            settle=self._settle,
            depends_on_indices=self.start == "lowest-index" and self.order == "given",
        )

    def normalize(self, inputs: Floats) -> Floats:
        """Scale instances to the unit square, and merge points that are nearly equal."""
        return merge_near_points(super().normalize(inputs))

    def canonicalize(self, inputs: Floats, answers: Sequence[Indices]) -> Sequence[Indices]:
        """Order each hull counter-clockwise from the vertex that `start` names."""
        indices, lengths = pad(answers)
        width = indices.shape[1]
        mask = real(lengths, width)
        indices = _counter_clockwise(inputs, indices, lengths)
        vertices = np.take_along_axis(inputs, indices[..., None], axis=1)
        keys: tuple[np.ndarray, ...]
        if self.start == "leftmost":
            keys = (vertices[..., 1], vertices[..., 0])
        elif self.start == "lowest-index":
            keys = (indices,)
        else:
            in_square = np.take_along_axis(self.normalize(inputs), indices[..., None], axis=1)
            keys = (indices, (in_square**2).sum(-1))
        first = np.lexsort((*keys, ~mask), axis=-1)[:, :1]
        rotation = (np.arange(width) + first) % np.maximum(lengths, 1)[:, None]
        return trim(np.take_along_axis(indices, rotation, 1), lengths)

    def to_tokens(self, answers: Sequence[Indices]) -> list[Indices]:
        if self.closed:
            answers = [np.append(answer, answer[:1]) for answer in answers]
        return super().to_tokens(answers)

    def from_tokens(self, tokens: Indices) -> Indices:
        vertices = super().from_tokens(tokens)
        is_closed = self.closed and len(vertices) > 1 and vertices[0] == vertices[-1]
        return vertices[:-1] if is_closed else vertices

    def max_length(self, n: int) -> int:
        return n + self.closed

    def answer_error(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        if not len(outputs):
            return "expected at least one vertex, got none"
        return duplicate_error(outputs, first)

    def _settle(self, inputs: Floats, outputs: Indices) -> Indices:
        """Return the exact hull if it differs from the answer by less than RESOLUTION.

        Otherwise return the answer.
        """
        if _is_hull(inputs, outputs):
            return outputs
        from ptrnet import labellers  # few answers need it

        (exact,) = labellers.label(self, inputs[None])
        return exact if rings_are_near(super().normalize(inputs), outputs, exact) else outputs

    def score(self, examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, "Scores"]:
        from ptrnet.metrics.polygon import score

        return score(examples, answers)

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        return Drawing(inputs, [inputs[np.append(outputs, outputs[:1])]])


def _is_hull(points: Floats, ring: Indices) -> bool:
    """Whether a ring is the hull: it turns left at each corner, and no point is outside an edge."""
    before, after, predicates = np.roll(ring, 1), np.roll(ring, -1), Predicates(points)
    everything = np.arange(len(points))
    edges, others = ((ring[:, None] != everything) & (after[:, None] != everything)).nonzero()
    outside = predicates.turn(ring[edges], after[edges], others) < 0
    return not outside.any() and bool((predicates.turn(before, ring, after) > 0).all())


def _counter_clockwise(inputs: Floats, rings: Indices, lengths: Indices) -> Indices:
    """Reverse the rings `(B, M)` of `lengths` `(B,)` that run clockwise."""
    steps = np.arange(rings.shape[1])
    is_clockwise = area_signs(inputs, rings, lengths) < 0
    turned = real(lengths, rings.shape[1]) & is_clockwise[:, None]
    return np.take_along_axis(rings, np.where(turned, lengths[:, None] - 1 - steps, steps), 1)


TASK = Hull
