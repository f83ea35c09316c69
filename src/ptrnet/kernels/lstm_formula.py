"""One LSTM layer by the formula. `lstm.py` chooses between the formula and faster code."""

from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.masks import length_mask


class Weights(NamedTuple):
    """The parameters of one LSTM layer with d input features and H hidden units.

    In `nn.LSTM`, these parameters are called `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh`.
    Each gate has H rows, in PyTorch's order: input, forget, cell, output.
    """

    input: Tensor  # (4H, d)
    hidden: Tensor  # (4H, H)
    input_bias: Tensor  # (4H,)
    hidden_bias: Tensor  # (4H,)


def naive_lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Compute `lstm` by the formula, step by step, on any device.

    PyTorch can transform all operations of this function. `torch.lstm` does not support `vmap`, and
    oneDNN's layer does not support forward-mode differentiation.
    """
    mask = length_mask(lengths, inputs.shape[1])[..., None]
    inputs = inputs.masked_fill(~mask, 0)  # padding may hold any value, also NaN
    outputs = [inputs.new_zeros(inputs.shape[0], 0, weights.hidden.shape[1])]
    for t in range(inputs.shape[1]):
        after = naive_cell(inputs[:, t], state, weights)
        h, c = (torch.where(mask[:, t], *pair) for pair in zip(after, state, strict=True))
        outputs.append(h[:, None])
        state = h, c
    return torch.cat(outputs, 1), state


def naive_cell(
    inputs: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, Tensor]:
    """Compute `cell` by the formula."""
    h, c = state
    by_input = torch.nn.functional.linear(inputs, weights.input, weights.input_bias)
    by_hidden = torch.nn.functional.linear(h, weights.hidden, weights.hidden_bias)
    i, f, g, o = (by_input + by_hidden).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c
