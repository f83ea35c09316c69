"""`x W'`: PyTorch's product; on a CPU, without gradients, of many float32 rows a packed one.

PyTorch takes float32 products at half speed on processors that are not Intel's.
"""

import torch
from torch import Tensor
from torch.nn import functional

# Rows from which packing pays, and compiled code is worth loading.
MANY = 64


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """`(..., N)` of x `(..., K)` and a weight `(N, K)`; as `torch.nn.functional.linear`."""
    single = x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu"
    plain = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu")
    if plain or not single or x.numel() < MANY * x.shape[-1]:
        return functional.linear(x, weight)
    from ptrnet.kernels import packed

    if not packed.available(torch.float32):
        return functional.linear(x, weight)
    return packed.linear(x, weight)
