"""Which entries of a padded batch are real, as PyTorch masks."""

import torch
from torch import Tensor


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """`(B, size)` boolean: True before each of the `(B,)` lengths, False on the padding after."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]
