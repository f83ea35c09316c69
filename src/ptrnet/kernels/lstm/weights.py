"""The parameters of one LSTM layer, of H hidden units for d features.

The rows are those of the gates, in PyTorch's order: input, forget, cell, output.
"""

from typing import NamedTuple

from torch import Tensor


class Weights(NamedTuple):
    """What `nn.LSTM` calls `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh`, in that order."""

    input: Tensor  # (4H, d)
    hidden: Tensor  # (4H, H)
    input_bias: Tensor  # (4H,)
    hidden_bias: Tensor  # (4H,)
