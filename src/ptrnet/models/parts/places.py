"""What a network reads of points as they look from where one stands."""

import math

import torch
from torch import Tensor, nn


class Places(nn.Module):
    """`W [x; r; |r|; g; |g|; log s; sin(pi r); cos(pi r); sin(2 pi r); ...] + b`.

    Of a point x, one stands at c and goes to e: `r = (x - c) / s` and `g = (x - e) / s`, in units
    of s, the largest number in any difference from c. In float32 (or better) under autocast.

    Args:
        features: numbers a point has, d.
        units: size of what comes out, H.
        octaves: sines and cosines of each difference, each of twice the frequency before.
    """

    def __init__(self, features: int, units: int, octaves: int) -> None:
        super().__init__()
        self.octaves = octaves
        self.map = nn.Linear(features * (3 + 2 * octaves) + 3, units)

    def forward(self, points: Tensor, here: Tensor, goal: Tensor) -> Tensor:
        """`(R, T, H)` of points `(R, T, d)`, seen from `here` on the way to `goal` `(R, 1, d)`."""
        with torch.autocast(points.device.type, enabled=False):
            apart = points - here
            size = apart.abs().amax((1, 2), keepdim=True)
            size = torch.where(size > 0, size, 1)
            relative, before = apart / size, (points - goal) / size
            near, far = (x.norm(dim=-1, keepdim=True) for x in (relative, before))
            scale = size.log().expand_as(near)
            angles = [2**k * math.pi * relative for k in range(self.octaves)]
            waves = [wave(angle) for angle in angles for wave in (torch.sin, torch.cos)]
            seen = torch.cat([points, relative, near, before, far, scale, *waves], -1)
            found: Tensor = self.map(seen)
            return found
