"""PyTorch's own layer (oneDNN, cuDNN), made to stop at each sequence's length.

It takes padded tensors at full speed (a `PackedSequence` is many times slower on the CPU) but
returns the last cell state at the end of the padding. So padding is made to hold the state: one
more input feature, 1 on padding, adds 1000 to the forget gate and takes 1000 from the input
gate. sigmoid(1000) is 1 and sigmoid(-1000) is 0 in every float type: the cell is copied exactly,
forward and backward.
"""

import torch
from torch import Tensor

from ptrnet.kernels.cudnn import flatten_weights, without_autocast
from ptrnet.kernels.eager import is_recorded
from ptrnet.kernels.lstm.weights import Weights
from ptrnet.masks import gather_rows, length_mask

SATURATED = 1000.0


def lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """As `ptrnet.kernels.lstm`, on any device."""
    n, units = inputs.shape[1], weights.hidden.shape[1]
    if not n:
        return inputs.new_zeros(inputs.shape[0], 0, units), state
    padding = ~length_mask(lengths, n)
    inputs = inputs.masked_fill(padding[..., None], 0)  # padding may hold anything, NaN too
    hold = inputs.new_zeros(4, units)  # of the input gate, forget gate, cell and output gate
    hold[0], hold[1] = -SATURATED, SATURATED
    w_input = torch.cat([weights.input, hold.view(-1, 1)], 1)
    marked = torch.cat([inputs, padding[..., None].to(inputs.dtype)], -1)
    # cuDNN stores what a backward pass needs only if told so; what is recorded may get one.
    training = torch.is_grad_enabled() or is_recorded()
    parameters = [w_input, *weights[1:]]
    context, (marked, h0, c0) = without_autocast(marked, *state)
    with context:
        # Biases, one layer, no dropout, whether to train, one direction, batch first.
        outputs, _, c = torch.lstm(
            marked,
            (h0[None], c0[None]),
            flatten_weights(parameters) if inputs.is_cuda else parameters,
            True,
            1,
            0.0,
            training,
            False,
            True,
        )
    last = (lengths - 1).clamp(min=0)[:, None]
    h = torch.where((lengths > 0)[:, None], gather_rows(outputs, last)[:, 0], h0)
    return outputs, (h, c[0])
