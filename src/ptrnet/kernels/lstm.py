"""One LSTM layer over padded sequences (`lstm`), and one step of the layer (`cell`).

A batch has B sequences of N elements with d features each, and the layer has H hidden units. Step
`t` reads element `t`.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor

from ptrnet.kernels import is_recorded, is_transformed
from ptrnet.kernels.lstm_formula import Weights, naive_cell, naive_lstm
from ptrnet.masks import gather_rows, length_mask

MIN_ROWS = 32  # PyTorch trains on a smaller batch in less time than the compiled kernel loads
SATURATED = 1000.0  # added to a gate on padding; see `torch_lstm`


def lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run the layer over each sequence up to its length.

    There are three implementations:

    - `naive_lstm`, the formula, under transforms that PyTorch's layer does not support (`vmap`).
    - The compiled kernel (`lstm_cpu.py`) for float32 inputs on a CPU if this is faster: in
      training, under autocast, and if PyTorch has no fast oneDNN.
    - `torch_lstm`, PyTorch's layer, in all other cases.

    Args:
        inputs: `(B, N, d)` float32 or float64.
        lengths: `(B,)` integers in 0..N.
        state: the initial hidden and cell state, `(B, H)` each.
        weights: the weights of `nn.LSTM`, of the inputs' type.

    Returns:
        Outputs `(B, N, H)`, and hidden and cell state `(B, H)` after each sequence's last element.
        Outputs on padding are arbitrary. Under bfloat16 autocast on a CPU, the outputs and the
        factors of recurrent products are bfloat16, but cell states and inputs of few features stay
        float32. On a GPU, autocast is switched off, because autocast would round the states at
        every step.

    Raises:
        ValueError: the shapes do not fit each other (the compiled kernel).
        RuntimeError: the shapes do not fit each other (PyTorch).
    """
    if is_transformed(inputs, *state, *weights):
        return naive_lstm(inputs, lengths, state, weights)
    is_served = inputs.device.type == "cpu" and inputs.dtype == torch.float32 and not is_recorded()
    if is_served and (
        torch.is_autocast_enabled("cpu")
        or not has_onednn()
        or (torch.is_grad_enabled() and len(inputs) >= MIN_ROWS)
    ):
        from ptrnet.kernels.lstm_cpu import compiled_lstm  # imports numba

        return compiled_lstm(inputs, lengths, state, weights)
    return torch_lstm(inputs, lengths, state, weights)


def cell(inputs: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """Return the next hidden and cell state `(B, H)` for inputs `(B, d)`, like `torch.lstm_cell`.

    On a GPU, autocast is switched off. On a CPU, autocast may round the products, but not the
    states.
    """
    if is_transformed(inputs, *state, *weights):
        return naive_cell(inputs, state, weights)
    context, (inputs, h, c) = without_autocast(inputs, *state)
    with context:
        h, c = torch.lstm_cell(inputs, (h, c), *weights)
    return h, c


@cache
def has_onednn() -> bool:
    """Whether PyTorch's LSTM on the CPU is oneDNN's, and oneDNN has fast code for the processor."""
    is_built_in = torch.backends.mkldnn.is_available()
    return is_built_in and torch.backends.cpu.get_cpu_capability().startswith("AVX")


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


def without_autocast(*tensors: Tensor) -> tuple[AbstractContextManager[object], tuple[Tensor, ...]]:
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
