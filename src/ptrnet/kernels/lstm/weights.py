"""The parameters of one LSTM layer; gates in PyTorch's order: input, forget, cell, output."""

from typing import NamedTuple

from torch import Tensor


class Weights(NamedTuple):
    """As `nn.LSTM` calls them, `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh`."""

    input: Tensor  # (4H, d)
    hidden: Tensor  # (4H, H)
    input_bias: Tensor  # (4H,)
    hidden_bias: Tensor  # (4H,)
