"""The layer and the cell by their formulas, in operations that every transform of PyTorch knows.

`torch.lstm` has no rule for `vmap`, and oneDNN's has none for forward-mode differentiation.
"""

import torch
from torch import Tensor

from ptrnet.kernels.lstm.weights import Weights
from ptrnet.masks import length_mask


def lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """As `ptrnet.kernels.lstm`, on any device, one step after the other."""
    mask = length_mask(lengths, inputs.shape[1])[..., None]
    inputs = inputs.masked_fill(~mask, 0)  # padding may hold anything, NaN too
    outputs = [inputs.new_zeros(inputs.shape[0], 0, weights.hidden.shape[1])]
    for t in range(inputs.shape[1]):
        after = cell(inputs[:, t], state, weights)
        h, c = (torch.where(mask[:, t], *pair) for pair in zip(after, state, strict=True))
        outputs.append(h[:, None])
        state = h, c
    return torch.cat(outputs, 1), state


def cell(inputs: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """As `ptrnet.kernels.lstm.cell`."""
    h, c = state
    by_input = torch.nn.functional.linear(inputs, weights.input, weights.input_bias)
    by_hidden = torch.nn.functional.linear(h, weights.hidden, weights.hidden_bias)
    i, f, g, o = (by_input + by_hidden).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c
