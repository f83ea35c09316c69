"""Edge frames of a triangulation that is continued edge by edge: the edge is the first open one.

Seen from a point p the edge from u to v spans an angle: that of `(v - p) / (u - p)`, where points
of the plane are complex numbers. It is positive at the edge's left, and the apex of the edge's
Delaunay triangle is the point whose angle is largest. A frame has points at half of that angle,
clockwise, so that all are within a right angle of the first axis, and the apex is the rightmost:
the one that is clockwise of every other, as the next vertex of a hull is. NONE, no triangle, is the
point at infinity: of angle 0, clockwise of all points at the edge's right.
"""

import torch
from torch import Tensor

from ptrnet.constraints.open_edges import FrontEdge, OpenEdges
from ptrnet.indexing import gather_rows
from ptrnet.models.base import safe_sqrt
from ptrnet.models.parts.frames import EdgeFrames, FrameFeatures, signed_logs, vector_length
from ptrnet.models.parts.prefixes import PrefixEnds


class OpenEdgeFrames(EdgeFrames):
    """`EdgeFrames` of the edge whose triangle the next token decides, in sequences of apexes.

    Until that edge is known frames are those of the first element, as after one element in
    `EdgeFrames`.
    """

    is_open = True
    first_features = EdgeFrames.first_features + 6
    further_features = EdgeFrames.further_features + 2

    def empty(self, tokens: Tensor) -> tuple[Tensor, ...]:
        return OpenEdges.empty(tokens)

    def append(
        self, prefixes: tuple[Tensor, ...], tokens: Tensor, num_specials: int
    ) -> tuple[Tensor, ...]:
        return OpenEdges(*prefixes).append(tokens)

    def ends(self, prefixes: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return OpenEdges(*prefixes).front()

    def view(
        self, points: Tensor, num_specials: int, ends: tuple[Tensor, ...]
    ) -> "OpenEdgeFeatures":
        return OpenEdgeFeatures(points, num_specials, FrontEdge(*ends))


class OpenEdgeFeatures(FrameFeatures):
    """Every token at half the angle that every prefix's first open edge spans from there.

    Its distance is the root of those from the two ends, in units of the edge's length.
    """

    def __init__(self, points: Tensor, num_specials: int, front: FrontEdge) -> None:
        first, tail, head = front
        has_edge = (head > 0)[..., None]
        last = torch.where(head > 0, head, tail)
        super().__init__(points, num_specials, PrefixEnds(tail, torch.zeros_like(tail), last))
        (ux, uy), (vx, vy) = (
            gather_rows(self.padded, tokens).chunk(2, -1) for tokens in (tail, head)
        )
        xs, ys = self.padded[:, None].unbind(-1)
        x, y = _half_angle(ux - xs, uy - ys, vx - xs, vy - ys)
        length = vector_length(vx - ux, vy - uy)
        is_special = (self.tokens < num_specials).to(x.dtype)
        x = torch.where(is_special > 0, 1, x / length)
        y = torch.where(is_special > 0, 0, y / length)
        self.set_vectors(torch.where(has_edge, x, self.x), torch.where(has_edge, y, self.y))
        along_x, along_y = self.edge
        self.edge = torch.where(has_edge, 1, along_x), torch.where(has_edge, 0, along_y)
        known = [has_edge, (tail > 0)[..., None], (first > 0)[..., None]]
        self.known = [flag.to(x.dtype).expand_as(x) for flag in known]
        self.is_special = is_special.expand_as(x)

    def along_last_edge(self) -> Tensor:
        """`(11, B, M, S + N)`: those of an edge of the answer, logarithms of the sine, and what is
        known: whether the edge, an end of it, any element."""
        features = super().along_last_edge()
        logs = signed_logs(features[1:2])[0]
        return torch.cat([features, logs, torch.stack(self.known)])

    def along_edge_to(self, token: Tensor) -> Tensor:
        features = super().along_edge_to(token)
        return torch.cat([features, torch.stack([self.known[0], self.is_special])])


def _half_angle(ux: Tensor, uy: Tensor, vx: Tensor, vy: Tensor) -> tuple[Tensor, Tensor]:
    """The root of `conj(v) u`: at half the angle from v to u, in (-90, 90] degrees."""
    dot, cross = ux * vx + uy * vy, uy * vx - ux * vy
    size = safe_sqrt((ux.square() + uy.square()) * (vx.square() + vy.square()))
    larger = safe_sqrt((size + dot.abs()) / 2)
    smaller = cross / torch.where(larger > 0, 2 * larger, 1)  # the cross product, too, is 0 there
    acute = dot >= 0
    return (
        torch.where(acute, larger, smaller.abs()),
        torch.where(acute, smaller, torch.copysign(larger, cross)),
    )
