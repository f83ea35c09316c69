"""One LSTM layer over padded sequences, and one step of it.

`lstm` and `cell` choose what computes them: on a CPU the compiled kernel (`cpu.py`) for bfloat16,
and for float32 without gradients; else PyTorch's own layer (`reference.py`).

Throughout the package a sequence has N elements, read in N steps of which `t` is one; B is the
batch, d the features of an element, and H the hidden units.
"""

from functools import cache

import torch
from torch import Tensor

from ptrnet.kernels.cudnn import without_autocast
from ptrnet.kernels.lstm.weights import Weights

__all__ = ["Weights", "cell", "lstm"]

# Rows from which packing the weights again pays: for a step, by oneDNN's layer instead of PyTorch's
# cell; without gradients for a sequence, by the compiled kernel.
MIN_ROWS = 32


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
        Outputs behind a sequence's end are arbitrary. Under bfloat16 autocast on a CPU the outputs
        are bfloat16 and so are the recurrent products; inputs and cells stay float32. A GPU leaves
        autocast (`kernels/cudnn.py`).

    Raises:
        ValueError or RuntimeError: shapes that do not fit each other; from the compiled kernel or
            from PyTorch.
    """
    if (
        inputs.device.type == "cpu"
        and inputs.dtype == torch.float32
        and _is_compiled_faster(len(inputs), weights)
    ):
        from ptrnet.kernels.lstm.cpu import lstm as kernel
    else:
        from ptrnet.kernels.lstm.reference import lstm as kernel
    return kernel(inputs, lengths, state, weights)


def cell(inputs: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """One step: the next state `(B, H)` twice of inputs `(B, d)`; as `torch.lstm_cell`.

    On a GPU autocast is switched off. On a CPU it lowers the precision of the products alone, so
    oneDNN's layer, which would round the states too, is not used under it.
    """
    autocast = torch.is_autocast_enabled("cpu")
    context, (inputs, h, c) = without_autocast(inputs, *state)
    with context:
        if len(inputs) >= MIN_ROWS and inputs.device.type == "cpu" and not autocast and _onednn():
            states, training = (h[None], c[None]), torch.is_grad_enabled()
            _, h, c = torch.lstm(
                inputs[:, None], states, list(weights), True, 1, 0.0, training, False, True
            )
            return h[0], c[0]
        h, c = torch.lstm_cell(inputs, (h, c), *weights)
        return h, c


def _is_compiled_faster(rows: int, weights: Weights) -> bool:
    """Whether the compiled kernel is the faster one for so many float32 rows on this CPU."""
    if torch.is_autocast_enabled("cpu") or not _onednn():
        return True
    # oneDNN's backward pass has faster products in float32, for the weights' gradients; and a small
    # batch is computed before compiled code would even be loaded.
    if torch.is_grad_enabled() or rows < MIN_ROWS:
        return False
    from ptrnet.kernels.lstm.products import can_pack

    return can_pack(weights.hidden.shape[1], weights.input.shape[1], torch.float32)


@cache
def _onednn() -> bool:
    """Whether PyTorch's LSTM on the CPU is oneDNN's, and oneDNN is made for the processor.

    It takes products of float32 at twice the rate of `torch.mm` on processors that are not Intel's.
    """
    is_built_in = torch.backends.mkldnn.is_available()
    return is_built_in and torch.backends.cpu.get_cpu_capability().startswith("AVX")
