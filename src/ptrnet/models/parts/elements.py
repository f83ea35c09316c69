"""What a network reads of an element: its numbers, at several scales, and its index."""

import math

import torch
from torch import Tensor, nn


class Elements(nn.Module):
    """`W [p; sin(pi p); cos(pi p); sin(2 pi p); ...] + b`, and sines of the index where it is seen.

    In float32 (or better) under autocast: features keep all their digits.

    Args:
        features: numbers an element has, d.
        units: size of what comes out, H.
        octaves: sines and cosines of each feature, each of twice the frequency before.
        indices: whether `sin` and `cos` of `j / 10000^(2k / H)` are added (Vaswani et al. 2017).
    """

    def __init__(self, features: int, units: int, octaves: int, indices: bool) -> None:
        super().__init__()
        self.octaves, self.indices = octaves, indices
        self.map = nn.Linear(features * (1 + 2 * octaves), units)

    def forward(self, inputs: Tensor) -> Tensor:
        """`(B, N, H)` of `(B, N, d)`."""
        with torch.autocast(inputs.device.type, enabled=False):
            angles = [2**k * math.pi * inputs for k in range(self.octaves)]
            waves = [wave(angle) for angle in angles for wave in (torch.sin, torch.cos)]
            found: Tensor = self.map(torch.cat([inputs, *waves], -1))
            return found + self._of_indices(found) if self.indices else found

    def _of_indices(self, like: Tensor) -> Tensor:
        """`(N, H)`: sines, then cosines."""
        _, elements, units = like.shape
        steps = torch.arange(-(-units // 2), device=like.device, dtype=like.dtype)
        places = torch.arange(elements, device=like.device, dtype=like.dtype)
        angles = places[:, None] * torch.exp(steps * (-2 * math.log(10_000) / units))
        return torch.cat([angles.sin(), angles.cos()], -1)[:, :units]
