"""One LSTM layer: on a CPU compiled for bfloat16, and for float32 without gradients; else
PyTorch's own where that is fast.
"""

from functools import cache

import torch
from torch import Tensor

from ptrnet.kernels.cudnn import without_autocast
from ptrnet.kernels.lstm.weights import Weights

__all__ = ["Weights", "cell", "lstm"]

# Rows from which packing the weights anew pays: for a step, by oneDNN's layer instead of PyTorch's
# cell; without gradients for a sequence, by the compiled kernel.
MANY = 32


def lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Reads each sequence up to its length.

    Args:
        inputs: `(B, T, d)` float32 or float64.
        lengths: `(B,)` in 0..T.
        state: `(B, H)` twice, the hidden and the cell state to start from.
        weights: as `nn.LSTM` has them.

    Returns:
        Outputs `(B, T, H)` and the state `(B, H)` twice after each sequence's last element.
        Outputs behind a sequence's end are arbitrary. Under bfloat16 autocast on a CPU the outputs
        are bfloat16 and so are the recurrent products; inputs and cells stay float32. A GPU leaves
        autocast (`kernels/cudnn.py`).
    """
    if (
        inputs.device.type == "cpu"
        and inputs.dtype == torch.float32
        and _compiled(len(inputs), weights)
    ):
        from ptrnet.kernels.lstm.cpu import lstm as kernel
    else:
        from ptrnet.kernels.lstm.reference import lstm as kernel
    return kernel(inputs, lengths, state, weights)


def cell(inputs: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """One step: the next state `(R, H)` twice of inputs `(R, d)`; as `torch.lstm_cell`.

    Out of autocast on a GPU. On the CPU autocast lowers the products alone; oneDNN's layer would
    round the states, too.
    """
    low = torch.is_autocast_enabled("cpu")
    context, (inputs, h, c) = without_autocast(inputs, *state)
    with context:
        if len(inputs) >= MANY and inputs.device.type == "cpu" and not low and _onednn():
            given, training = (h[None], c[None]), torch.is_grad_enabled()
            _, h, c = torch.lstm(
                inputs[:, None], given, list(weights), True, 1, 0.0, training, False, True
            )
            return h[0], c[0]
        h, c = torch.lstm_cell(inputs, (h, c), *weights)
        return h, c


def _compiled(rows: int, weights: Weights) -> bool:
    """Whether the compiled kernel is the faster one on this CPU."""
    if torch.is_autocast_enabled("cpu") or not _onednn():
        return True
    # oneDNN's backward pass has faster products in float32, for the weights' gradients; and a few
    # rows are answered before compiled code is even loaded.
    if torch.is_grad_enabled() or rows < MANY:
        return False
    from ptrnet.kernels.lstm.products import packs

    return packs(weights.hidden.shape[1], weights.input.shape[1], torch.float32)


@cache
def _onednn() -> bool:
    """Whether PyTorch's LSTM on the CPU is oneDNN's, and that is made for the processor.

    It takes products of float32 at twice the rate of `torch.mm` on processors that are not Intel's.
    """
    there = torch.backends.mkldnn.is_available()
    return there and torch.backends.cpu.get_cpu_capability().startswith("AVX")
