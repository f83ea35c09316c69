"""The product `x W'` of a linear map, with packed weights if PyTorch's product is slower.

On processors that are not Intel's, PyTorch's product reaches half to two thirds of the processor's
float32 rate. Packing the weights (see `packed.py`) pays on a CPU, without gradients, for many rows
of float32.
"""

import torch
from torch import Tensor
from torch.nn import functional

from ptrnet.kernels.eager import is_plain_float32

# For fewer rows, packing the weights does not pay. For fewer multiplications, PyTorch computes the
# product in less time than the compiled code takes to load.
MIN_ROWS, MIN_MULTIPLICATIONS = 128, 2**24


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """Return `nn.functional.linear(x, weight)` for x `(..., d_in)` and a weight `(d_out, d_in)`.

    Works for any dtype and device, and under autocast. Raises RuntimeError if the shapes do not
    fit, as PyTorch does.
    """
    if _is_packing_faster(x, weight):
        from ptrnet.kernels import packed

        return packed.linear(x, weight)
    return functional.linear(x, weight)


def _is_packing_faster(x: Tensor, weight: Tensor) -> bool:
    if not is_plain_float32(x, weight) or x.shape[-1:] != weight.shape[1:]:
        return False
    multiplications = x.numel() * len(weight)
    if multiplications < MIN_MULTIPLICATIONS or multiplications < MIN_ROWS * weight.numel():
        return False
    from ptrnet.kernels.packed import can_multiply

    return can_multiply(torch.float32)
