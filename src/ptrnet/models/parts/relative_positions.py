"""The input encoding of points: where they are, seen from the current one and from the goal."""

import math

import torch
from torch import Tensor, nn

from ptrnet.models.base import safe_sqrt


class RelativePositions(nn.Module):
    """`W [x; r; |r|; g; |g|; log s; sin(pi r); cos(pi r); sin(2 pi r); ...] + b`.

    Of a point x, a current point c and a goal e: `r = (x - c) / s` and `g = (x - e) / s`, in units
    of s, the largest number in any difference from c. In float32 (or better) under autocast.

    Args:
        features: numbers in a point, d.
        units: of the result, H.
        octaves: sines and cosines of each difference, each of twice the frequency before.
    """

    def __init__(self, features: int, units: int, octaves: int) -> None:
        super().__init__()
        self.octaves = octaves
        self.map = nn.Linear(features * (3 + 2 * octaves) + 3, units)

    def forward(self, points: Tensor, current: Tensor, goal: Tensor) -> Tensor:
        """`(R, L, H)` of points `(R, L, d)`; the current point and the goal are `(R, 1, d)`."""
        with torch.autocast(points.device.type, enabled=False):
            differences = points - current
            size = differences.abs().amax((1, 2), keepdim=True)
            size = torch.where(size > 0, size, 1)
            from_current, from_goal = differences / size, (points - goal) / size
            dist_current, dist_goal = (_vector_length(x) for x in (from_current, from_goal))
            scale = size.log().expand_as(dist_current)
            angles = [2**k * math.pi * from_current for k in range(self.octaves)]
            waves = [wave(angle) for angle in angles for wave in (torch.sin, torch.cos)]
            numbers = [points, from_current, dist_current, from_goal, dist_goal, scale, *waves]
            return self.map(torch.cat(numbers, -1))  # type: ignore[no-any-return]


def _vector_length(x: Tensor) -> Tensor:
    """`(R, L, 1)` of vectors `(R, L, d)`."""
    return safe_sqrt(x.square().sum(-1, keepdim=True))
