"""The parameters of one LSTM layer, in PyTorch's order of gates: input, forget, cell, output."""

from typing import NamedTuple

from torch import Tensor


class Weights(NamedTuple):
    input: Tensor  # (4H, d)
    hidden: Tensor  # (4H, H)
    input_bias: Tensor  # (4H,)
    hidden_bias: Tensor  # (4H,)
