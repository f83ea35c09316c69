"""The input encoding of elements: their features, at several scales, and their index."""

import math

import torch
from torch import Tensor, nn


class Elements(nn.Module):
    """`W [p; sin(pi p); cos(pi p); sin(2 pi p); ...] + b`, and sines of the index where it is seen.

    In float32 (or better) under autocast: features keep all their digits.

    Args:
        features: numbers in an element, d.
        units: size of the output, H.
        octaves: sines and cosines of each feature, each of twice the frequency before.
        see_indices: whether `sin` and `cos` of `j / 10000^(2k / H)` are added, j the index of the
            element (Vaswani et al. 2017).
    """

    def __init__(self, features: int, units: int, octaves: int, see_indices: bool) -> None:
        super().__init__()
        self.octaves, self.see_indices = octaves, see_indices
        self.map = nn.Linear(features * (1 + 2 * octaves), units)

    def forward(self, inputs: Tensor) -> Tensor:
        """`(B, N, H)` of `(B, N, d)`."""
        with torch.autocast(inputs.device.type, enabled=False):
            angles = [2**k * math.pi * inputs for k in range(self.octaves)]
            waves = [wave(angle) for angle in angles for wave in (torch.sin, torch.cos)]
            rows: Tensor = self.map(torch.cat([inputs, *waves], -1))
            return rows + index_encoding(rows) if self.see_indices else rows


def index_encoding(rows: Tensor) -> Tensor:
    """`(N, H)`, what is added to `(B, N, H)` rows: sines of the indices, then their cosines."""
    _, n, units = rows.shape
    exponents = torch.arange(-(-units // 2), device=rows.device, dtype=rows.dtype)
    indices = torch.arange(n, device=rows.device, dtype=rows.dtype)
    angles = indices[:, None] * torch.exp(exponents * (-2 * math.log(10_000) / units))
    return torch.cat([angles.sin(), angles.cos()], -1)[:, :units]


def normal_vectors(*shape: int, divisor: float = 1.0) -> Tensor:
    """Normal numbers, for learned vectors to start from; any where tensors have no memory.

    Drawing such would import a compiler, which takes longer than all else that loading does.

    Args:
        shape: of the tensor.
        divisor: of the numbers; 10 makes their standard deviation 0.1.
    """
    numbers = torch.empty(shape)
    return numbers if numbers.is_meta else numbers.normal_() / divisor
