"""One LSTM layer in plain PyTorch: the formula, and PyTorch's own layer."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.kernels.eager import is_recorded
from ptrnet.masks import gather_rows, length_mask

SATURATED = 1000.0  # added to a gate on padding; see `torch_lstm`


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


def torch_lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Compute `lstm` by PyTorch's own layer (oneDNN, cuDNN). Padding does not change the states.

    PyTorch's layer is fast on padded tensors (a `PackedSequence` is many times slower on the CPU).
    But the layer returns the cell state at the end of the padding, so padding must not change this
    state. We add an input feature that is 1 on padding. The weights of this feature add SATURATED
    to the forget gate, and subtract SATURATED from the input gate. sigmoid(1000) is 1 and
    sigmoid(-1000) is 0 in every float type, so the cell state is copied exactly, forward and
    backward.
    """
    n, units = inputs.shape[1], weights.hidden.shape[1]
    if not n:
        return inputs.new_zeros(inputs.shape[0], 0, units), state
    padding = ~length_mask(lengths, n)
    inputs = inputs.masked_fill(padding[..., None], 0)  # padding may hold any value, also NaN
    hold = inputs.new_zeros(4, units)  # a row for each gate: input, forget, cell, output
    hold[0], hold[1] = -SATURATED, SATURATED
    w_input = torch.cat([weights.input, hold.view(-1, 1)], 1)
    marked = torch.cat([inputs, padding[..., None].to(inputs.dtype)], -1)
    # cuDNN stores values for a backward pass only if `training` is True. A recorded graph may be
    # differentiated later.
    training = torch.is_grad_enabled() or is_recorded()
    parameters = [w_input, *weights[1:]]
    context, (marked, h0, c0) = without_autocast(marked, *state)
    with context:
        # The last arguments: biases, one layer, no dropout, whether to train, one direction, batch
        # first.
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


def without_autocast(
    *tensors: Tensor,
) -> tuple[AbstractContextManager[object], tuple[Tensor, ...]]:
    """Return a context that switches off autocast on a GPU, and the tensors to use in the context.

    Autocast on a GPU would round the states at every step. Also, cuDNN's layers return float16 even
    if autocast is set to bfloat16. If PyTorch allows TensorFloat-32, products in the context use
    this type.

    Under autocast on a GPU, the tensors are converted to float32, except float64 tensors.
    Otherwise the context does nothing, and the tensors are unchanged.
    """
    if not (tensors[0].is_cuda and torch.is_autocast_enabled("cuda")):
        return nullcontext(), tensors
    promoted = (t.to(torch.promote_types(t.dtype, torch.float32)) for t in tensors)
    return torch.autocast("cuda", enabled=False), tuple(promoted)


def flatten_weights(weights: Iterable[Tensor]) -> list[Tensor]:
    """Return the weights as views of one new block of memory, which cuDNN reads without a copy.

    Unlike with `nn.LSTM.flatten_parameters`, gradients flow to the weights. All weights must have
    the same dtype and device.
    """
    weights = list(weights)
    parts = torch.cat([w.flatten() for w in weights]).split([w.numel() for w in weights])
    return [part.view_as(w) for part, w in zip(parts, weights, strict=True)]
