"""One LSTM layer over padded sequences (`lstm`), and one step of the layer (`cell`).

`lstm` has three implementations:

- For float32 inputs on a CPU, we use the compiled kernel (`cpu.py`) under autocast, or if PyTorch
  has no fast oneDNN. On a processor with AVX2, we also use the kernel for batches of at least
  MIN_ROWS sequences, if it can pack the weights. With AVX-512, we do so only without gradients.
- Under transforms that PyTorch's layer does not support, such as `vmap`, we use the formula
  (`naive_lstm`).
- In all other cases, we use PyTorch's own layer (`torch_lstm`).

`cell` has no compiled kernel.

In this package, a batch has B sequences of N elements with d features each, and the layer has H
hidden units. Step `t` reads element `t`.
"""

from functools import cache

import torch
from torch import Tensor

from ptrnet.kernels.eager import is_recorded, is_transformed
from ptrnet.kernels.lstm.plain import (
    Weights,
    flatten_weights,
    naive_cell,
    naive_lstm,
    torch_lstm,
    without_autocast,
)

__all__ = [
    "MIN_ROWS",
    "Weights",
    "cell",
    "flatten_weights",
    "has_onednn",
    "lstm",
    "naive_cell",
    "naive_lstm",
    "torch_lstm",
    "without_autocast",
]

# oneDNN's layer and the compiled kernel pack the weights in every call. For batches of fewer rows
# than this, packing does not pay.
MIN_ROWS = 32


def lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run the layer over each sequence up to its length.

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
    """Return the next hidden and cell state `(B, H)` for inputs `(B, d)`, like `torch.lstm_cell`.

    On a GPU, autocast is switched off. On a CPU, autocast may round the products, but not the
    states. oneDNN's layer would also round the states, so we do not use this layer under autocast.
    """
    if is_transformed(inputs, *state, *weights):
        return naive_cell(inputs, state, weights)
    autocast = torch.is_autocast_enabled("cpu")
    context, (inputs, h, c) = without_autocast(inputs, *state)
    with context:
        on_cpu = inputs.device.type == "cpu" and not autocast and not is_recorded()
        if on_cpu and len(inputs) >= MIN_ROWS and has_onednn():
            states, training = (h[None], c[None]), torch.is_grad_enabled()
            # The last arguments: biases, one layer, no dropout, whether to train, one direction,
            # batch first.
            _, h, c = torch.lstm(
                inputs[:, None], states, list(weights), True, 1, 0.0, training, False, True
            )
            return h[0], c[0]
        h, c = torch.lstm_cell(inputs, (h, c), *weights)
        return h, c


def _is_compiled_faster(rows: int, weights: Weights) -> bool:
    """Whether the compiled kernel is faster than PyTorch for a batch of this size on this CPU."""
    if torch.is_autocast_enabled("cpu") or not has_onednn():
        return True
    # PyTorch computes a small batch in less time than the compiled code takes to load.
    if rows < MIN_ROWS:
        return False
    from ptrnet.kernels import packed
    from ptrnet.kernels.lstm.cpu import PackedProducts, products_class

    # With AVX-512, oneDNN computes the weights' gradients faster than the kernel.
    if torch.is_grad_enabled() and packed.LANES == 16:
        return False

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
