"""One LSTM layer over a padded batch: compiled on the CPU, PyTorch's own elsewhere."""

import torch
from torch import Tensor

from ptrnet.kernels.lstm.weights import Weights

__all__ = ["Weights", "lstm"]


def lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Reads each sequence up to its length.

    Args:
        inputs: `(B, T, d)` float32 or float64.
        lengths: `(B,)` in 0..T.
        state: `(B, H)` twice, the hidden and the cell state to start from.
        weights: as `nn.LSTM` has them.

    Returns:
        Outputs `(B, T, H)` and the state `(B, H)` twice after each sequence's last element.
        Outputs behind a sequence's end are arbitrary. Under bfloat16 autocast the outputs are
        bfloat16 and so are the recurrent products; on the CPU inputs and cells stay float32.
    """
    if inputs.device.type == "cpu" and inputs.dtype == torch.float32:
        from ptrnet.kernels.lstm.cpu import lstm as kernel
    else:
        from ptrnet.kernels.lstm.reference import lstm as kernel
    return kernel(inputs, lengths, state, weights)
