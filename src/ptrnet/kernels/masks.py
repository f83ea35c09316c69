"""Which positions of a padded batch are real."""

import torch
from torch import Tensor


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """`(B, size)` boolean of lengths `(B,)`: True before each length, False on padding."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]
