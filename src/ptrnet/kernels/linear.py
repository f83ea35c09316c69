"""`x W'`: PyTorch's product; on a CPU, without gradients, of many float32 rows a packed one.

PyTorch takes float32 products at half speed on processors that are not Intel's.
"""

import torch
from torch import Tensor
from torch.nn import functional

# Rows, and multiplications, from which packing pays; fewer are answered before compiled code is
# even loaded.
ROWS, MANY = 128, 2**24


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """`(..., N)` of x `(..., K)` and a weight `(N, K)`; as `torch.nn.functional.linear`."""
    return (_packed if _packs(x, weight) else functional.linear)(x, weight)


def _packs(x: Tensor, weight: Tensor) -> bool:
    if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or x.device.type != "cpu":
        return False
    if x.dtype != torch.float32 or weight.dtype != x.dtype or x.shape[-1:] != weight.shape[1:]:
        return False
    work = x.numel() * len(weight)
    if work < MANY or work < ROWS * weight.numel():
        return False
    from ptrnet.kernels.packed import available

    return available(torch.float32)


def _packed(x: Tensor, weight: Tensor) -> Tensor:
    from ptrnet.kernels.packed import linear

    return linear(x, weight)
