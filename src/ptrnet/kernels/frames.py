"""The features of tokens in the frame of an edge in the plane, which `EdgeFrames` scores.

`ptrnet.models.parts.frames` explains frames. `frames_cpu.py` computes the same, compiled for a CPU.
"""

import torch
from torch import Tensor, nn

from ptrnet.masks import gather_rows

# `signed_logs` is about linear below a scale and logarithmic above it.
SCALES = (1e-3, 1e-5, 1e-7)
MIN_DIST = 1e-6  # replaces smaller distances, because the logarithm of 0 is not finite


class FrameFeatures:
    """The features of each token in the frame of each prefix: direction and distance.

    Tensors with a value for each token are `(B, M, S + N)`. Tensors with a value for each prefix
    are `(B, M, 1)`. A subclass calls `set_frame` to place tokens in frames, and may add features.

    Args:
        points: `(B, N, 2)`, the elements' coordinates.
        num_specials: number S of special slots, which have the position of the first element.
        first: `(B, M)`, the token of each prefix's first element, or an open edge's tail; 0: none.
        last: `(B, M)`, the token of each prefix's last element, or an open edge's head; 0: none.
    """

    # Numbers of features in the first round and in each further round.
    first_size, further_size = 5, 7 + 3 * len(SCALES)

    def __init__(self, points: Tensor, num_specials: int, first: Tensor, last: Tensor) -> None:
        self.padded = nn.functional.pad(points, (0, 0, num_specials, 0))
        self.tokens = torch.arange(self.padded.shape[1], device=points.device)
        is_special = self.tokens < num_specials
        xs, ys = self.padded[:, None].unbind(-1)  # (B, 1, S + N)
        first_point, last_point = self.points_of(first), self.points_of(last)
        self.has_element = (last > 0)[..., None]
        self.offset = (  # the position of every token relative to the last element
            torch.where(is_special, first_point[0], xs) - last_point[0],
            torch.where(is_special, first_point[1], ys) - last_point[1],
        )
        real = self.has_element & ~is_special
        self.is_end = [
            ((xs == x) & (ys == y) & real).to(points.dtype) for x, y in (first_point, last_point)
        ]

    def points_of(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The coordinates x and y of tokens `(B, M)`, each `(B, M, 1)`."""
        x, y = gather_rows(self.padded, tokens).chunk(2, -1)
        return x, y

    def set_frame(self, x: Tensor, y: Tensor, edge: tuple[Tensor, Tensor]) -> None:
        """Set the position (x, y) of each token, and the direction of each prefix's edge."""
        self.x, self.y, self.edge = x, y, edge
        self.dist = vector_length(x, y)
        self.log_dist = self.dist.log()

    def along_last_edge(self) -> Tensor:
        """Features `(5, B, M, S + N)` in the first round.

        The features are cosine and sine of the angle to the edge, the logarithm of the distance,
        and two flags: whether the token is at the first element, and whether it is at the last
        element.
        """
        x, y = self.edge
        framed = [*self._cosine_sine(x, y, vector_length(x, y)), self.log_dist]
        return torch.stack([*(torch.where(self.has_element, f, 0) for f in framed), *self.is_end])

    def along_edge_to(self, token: Tensor) -> Tensor:
        """Features `(F, B, M, S + N)` for the edge to the tokens `(B, M, 1)`.

        The features are:

        - cosine and sine of the angle to the edge
        - signed logarithms of this cosine and sine, and of the distance from the line through the
          edge
        - the logarithm of the distance, minus the logarithm of the edge's length
        - three flags: whether the token is at the first element, whether it is at the last element,
          and whether the edge ends at the token
        - whether the answer has an element

        Thanks to the signed logarithms, even tokens that are close together differ.
        """
        x, y, dist, log_dist = (
            values.gather(2, token) for values in (self.x, self.y, self.dist, self.log_dist)
        )
        cosine, sine = self._cosine_sine(x, y, dist)
        parallel = torch.where(self.has_element, cosine, self.y - y)
        perpendicular = torch.where(self.has_element, sine, self.x - x)
        line_dist = torch.where(self.has_element, sine * self.dist, 0)
        is_token, has_element = (self.tokens == token).to(x.dtype), self.has_element.to(x.dtype)
        log_ratio = (self.log_dist - log_dist) * has_element
        flags = [*self.is_end, is_token, has_element.expand_as(log_ratio)]
        geometry = torch.stack([parallel, perpendicular, line_dist])
        logs = signed_logs(geometry).flatten(0, 1)
        return torch.cat([geometry[:2], logs, torch.stack([log_ratio, *flags])])

    def _cosine_sine(self, x: Tensor, y: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine of the angle from vector (x, y) to each token. Zero vectors give 0."""
        product = length * self.dist
        return (x * self.x + y * self.y) / product, (x * self.y - y * self.x) / product


class LastEdgeFeatures(FrameFeatures):
    """The features of each token relative to the last element and the last edge of each prefix."""

    def __init__(
        self, points: Tensor, num_specials: int, first: Tensor, previous: Tensor, last: Tensor
    ) -> None:
        super().__init__(points, num_specials, first, last)
        (from_x, from_y), (to_x, to_y) = self.points_of(previous), self.points_of(last)
        has_no_edge = (previous == 0)[..., None]
        edge = (
            torch.where(has_no_edge, 0, to_x - from_x),
            torch.where(has_no_edge, -1, to_y - from_y),
        )
        self.set_frame(*self.offset, edge)


def vector_length(x: Tensor, y: Tensor) -> Tensor:
    """The length of vectors (x, y), at least MIN_DIST."""
    return safe_sqrt(x * x + y * y).clamp(min=MIN_DIST)


def safe_sqrt(x: Tensor) -> Tensor:
    """The square root of numbers >= 0. Its derivative at 0 is 0 instead of infinity."""
    is_zero = x == 0
    # The inner `where` keeps 0 out of `sqrt`. Otherwise the derivative at 0 would be 0 * inf = NaN.
    return torch.where(is_zero, 0, torch.where(is_zero, 1, x).sqrt())


def signed_logs(x: Tensor) -> Tensor:
    """`sign(x) log(1 + |x| / scale)` for each of three scales: `(F, 3, ...)` of x `(F, ...)`.

    Several small operations would take longer, so we compute all scales in one operation.
    """
    size = x.abs()
    scaled = torch.stack([size * (1 / scale) for scale in SCALES], 1)
    return scaled.log1p() * x.sign()[:, None]  # the second derivative of `copysign` would be NaN


# Sequences of apexes continue a triangulation at its first open edge. Take points of the plane as
# complex numbers. Seen from a point p, the edge from u to v spans the angle of `(v - p) / (u - p)`.
# The angle is positive if p is on the left of the edge. The apex of the edge's Delaunay triangle is
# the point with the largest angle. A frame places a point at half of its angle, measured clockwise
# from the first axis. All points are then within a right angle of this axis. The apex is the most
# clockwise point, like the next vertex of a hull. NONE (no triangle) has angle 0, like a point at
# infinity. If all points are on the right of the edge, all their angles are negative. Then NONE is
# the most clockwise token.


class OpenEdgeFeatures(FrameFeatures):
    """The features of each token relative to the first open edge of each prefix.

    A token is placed at half the angle that the edge spans as seen from the token. The distance in
    the frame is `sqrt(a b) / length`, where a and b are the token's distances from the two ends of
    the edge. The arguments `tail` and `head` are the tokens of a `FrontEdge`.
    """

    first_size, further_size = FrameFeatures.first_size + 6, FrameFeatures.further_size + 2

    def __init__(
        self, points: Tensor, num_specials: int, first: Tensor, tail: Tensor, head: Tensor
    ) -> None:
        super().__init__(points, num_specials, tail, torch.where(head > 0, head, tail))
        has_edge = (head > 0)[..., None]
        (ux, uy), (vx, vy) = self.points_of(tail), self.points_of(head)
        xs, ys = self.padded[:, None].unbind(-1)
        x, y = _half_angle(ux - xs, uy - ys, vx - xs, vy - ys)
        length = vector_length(vx - ux, vy - uy)
        is_special = (self.tokens < num_specials).to(x.dtype)
        x = torch.where(is_special > 0, 1, x / length)
        y = torch.where(is_special > 0, 0, y / length)
        # The edge is the first axis of the frame. Without an edge, use the frame of `EdgeFrames`
        # after a single element: downwards along the second axis.
        edge = has_edge.to(x.dtype), has_edge.to(x.dtype) - 1
        offset_x, offset_y = self.offset
        self.set_frame(torch.where(has_edge, x, offset_x), torch.where(has_edge, y, offset_y), edge)
        known = [has_edge, (tail > 0)[..., None], (first > 0)[..., None]]
        self.known = [flag.to(x.dtype).expand_as(x) for flag in known]
        self.is_special = is_special.expand_as(x)

    def along_last_edge(self) -> Tensor:
        """Features `(11, B, M, S + N)` in the first round.

        The first five are the features of the base class, with the edge's tail and head in place of
        the first and the last element. Three signed logarithms of the sine follow, and three flags:
        whether the edge, its tail, and the answer's first element are known.
        """
        features = super().along_last_edge()
        logs = signed_logs(features[1:2])[0]
        return torch.cat([features, logs, torch.stack(self.known)])

    def along_edge_to(self, token: Tensor) -> Tensor:
        features = super().along_edge_to(token)
        return torch.cat([features, torch.stack([self.known[0], self.is_special])])


def _half_angle(ux: Tensor, uy: Tensor, vx: Tensor, vy: Tensor) -> tuple[Tensor, Tensor]:
    """The complex square root of `conj(v) u`. Its angle is half of the angle from v to u."""
    dot, cross = ux * vx + uy * vy, uy * vx - ux * vy
    size = safe_sqrt((ux.square() + uy.square()) * (vx.square() + vy.square()))
    larger = safe_sqrt((size + dot.abs()) / 2)
    smaller = cross / torch.where(larger > 0, 2 * larger, 1)  # if larger is 0, so is cross
    acute = dot >= 0
    return (
        torch.where(acute, larger, smaller.abs()),
        torch.where(acute, smaller, torch.copysign(larger, cross)),
    )
