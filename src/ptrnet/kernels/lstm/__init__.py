"""One LSTM layer over padded sequences, and one step of it.

`lstm` has three implementations: the compiled kernel (`cpu.py`), PyTorch's own layer (`torch_lstm`)
and the formula (`naive_lstm`). The kernel takes float32 inputs on a CPU under autocast, if PyTorch
has no oneDNN, and in large batches without gradients if it multiplies by AVX-512. The formula
computes what PyTorch's layer cannot follow, as under `vmap`. PyTorch takes all else. `cell` is
PyTorch's.

Throughout the package B is the batch, N the elements of a sequence, each read in a step `t`, d the
features of an element, and H the hidden units.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.kernels.eager import is_recorded, is_transformed
from ptrnet.masks import gather_rows, length_mask

# oneDNN's layer and the compiled kernel pack the weights in every call: without gradients that does
# not pay below this batch size.
MIN_ROWS = 32

SATURATED = 1000.0  # what padding adds to a gate; see `torch_lstm`


class Weights(NamedTuple):
    """The parameters of one layer, of H hidden units for d features.

    These are what `nn.LSTM` calls `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh`, in that order.
    The rows are those of the gates, in PyTorch's order: input, forget, cell, output.
    """

    input: Tensor  # (4H, d)
    hidden: Tensor  # (4H, H)
    input_bias: Tensor  # (4H,)
    hidden_bias: Tensor  # (4H,)


def lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Reads each sequence up to its length.

    Args:
        inputs: `(B, N, d)` float32 or float64.
        lengths: `(B,)` integers in 0..N.
        state: `(B, H)` twice, the hidden and the cell state to start from.
        weights: as `nn.LSTM` has them, of the inputs' type.

    Returns:
        Outputs `(B, N, H)` and the state `(B, H)` twice after each sequence's last element.
        Outputs after a sequence's end are arbitrary. Under bfloat16 autocast on a CPU the outputs
        and the recurrent products are bfloat16; inputs of few features and cells stay float32. On a
        GPU autocast is switched off, as it would round the states at every step.

    Raises:
        ValueError: shapes that do not fit each other, in the compiled kernel.
        RuntimeError: the same in PyTorch.
    """
    if is_transformed(inputs, *state, *weights):
        return naive_lstm(inputs, lengths, state, weights)
    if (
        inputs.device.type == "cpu"
        and inputs.dtype == torch.float32
        and not is_recorded()
        and _is_compiled_faster(len(inputs), weights)
    ):
        from ptrnet.kernels.lstm import cpu

        return cpu.lstm(inputs, lengths, state, weights)
    return torch_lstm(inputs, lengths, state, weights)


def cell(inputs: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """One step: the next state `(B, H)` twice of inputs `(B, d)`; as `torch.lstm_cell`.

    On a GPU autocast is switched off. On a CPU autocast may round the products but not the states;
    oneDNN's layer would round those too, and is not used under autocast.
    """
    if is_transformed(inputs, *state, *weights):
        return naive_cell(inputs, state, weights)
    autocast = torch.is_autocast_enabled("cpu")
    context, (inputs, h, c) = without_autocast(inputs, *state)
    with context:
        on_cpu = inputs.device.type == "cpu" and not autocast and not is_recorded()
        if on_cpu and len(inputs) >= MIN_ROWS and has_onednn():
            states, training = (h[None], c[None]), torch.is_grad_enabled()
            # Biases, one layer, no dropout, whether to train, one direction, batch first.
            _, h, c = torch.lstm(
                inputs[:, None], states, list(weights), True, 1, 0.0, training, False, True
            )
            return h[0], c[0]
        h, c = torch.lstm_cell(inputs, (h, c), *weights)
        return h, c


def _is_compiled_faster(rows: int, weights: Weights) -> bool:
    """Whether the compiled kernel is the faster one for so many float32 rows on this CPU."""
    if torch.is_autocast_enabled("cpu") or not has_onednn():
        return True
    # PyTorch has computed a small batch before compiled code would even be loaded.
    if rows < MIN_ROWS:
        return False
    if torch.is_grad_enabled():  # oneDNN is faster at the products of the weights' gradients
        return False
    from ptrnet.kernels.lstm.cpu import PackedProducts, products_class

    units, features = weights.hidden.shape[1], weights.input.shape[1]
    return products_class(units, features, torch.float32) is PackedProducts


@cache
def has_onednn() -> bool:
    """Whether PyTorch's LSTM on the CPU is oneDNN's, and oneDNN has fast code for the processor.

    oneDNN computes float32 products at twice the rate of `torch.mm` on processors that are not
    Intel's.
    """
    is_built_in = torch.backends.mkldnn.is_available()
    return is_built_in and torch.backends.cpu.get_cpu_capability().startswith("AVX")


def naive_lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """As `lstm`, by the formula, on any device, one step after the other.

    PyTorch can transform all of its operations: `torch.lstm` has no rule for `vmap`, and oneDNN's
    layer has none for forward-mode differentiation.
    """
    mask = length_mask(lengths, inputs.shape[1])[..., None]
    inputs = inputs.masked_fill(~mask, 0)  # padding may hold anything, NaN too
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
    """As `cell`, by the formula."""
    h, c = state
    by_input = torch.nn.functional.linear(inputs, weights.input, weights.input_bias)
    by_hidden = torch.nn.functional.linear(h, weights.hidden, weights.hidden_bias)
    i, f, g, o = (by_input + by_hidden).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def torch_lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """As `lstm`, by PyTorch's own layer (oneDNN, cuDNN), made to stop at each sequence's length.

    PyTorch's layer takes padded tensors at full speed (a `PackedSequence` is many times slower on
    the CPU) but returns the last cell state at the end of the padding. So padding is made to hold
    the state: one more input feature, 1 on padding, adds SATURATED to the forget gate and subtracts
    it from the input gate. sigmoid(1000) is 1 and sigmoid(-1000) is 0 in every float type: the cell
    is copied exactly, forward and backward.
    """
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


def without_autocast(
    *tensors: Tensor,
) -> tuple[AbstractContextManager[object], tuple[Tensor, ...]]:
    """A context to compute in, and the tensors to compute with.

    Autocast on a GPU would round the states at every step, and cuDNN's layers return float16 even
    if autocast is set to bfloat16. Without it, products are TensorFloat-32 if PyTorch allows that.

    Under autocast on a GPU: a context that switches it off, and the tensors in float32 (float64
    stays). Elsewhere: a context that does nothing, and the tensors themselves.
    """
    if not (tensors[0].is_cuda and torch.is_autocast_enabled("cuda")):
        return nullcontext(), tensors
    promoted = (t.to(torch.promote_types(t.dtype, torch.float32)) for t in tensors)
    return torch.autocast("cuda", enabled=False), tuple(promoted)


def flatten_weights(weights: Iterable[Tensor]) -> list[Tensor]:
    """The weights as views of one new block of memory, which cuDNN reads without a copy.

    As `nn.LSTM.flatten_parameters`, but gradients flow through; all of one dtype and device.
    """
    weights = list(weights)
    parts = torch.cat([w.flatten() for w in weights]).split([w.numel() for w in weights])
    return [part.view_as(w) for part, w in zip(parts, weights, strict=True)]
