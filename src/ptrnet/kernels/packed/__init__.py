"""Products with weights that were packed once, for the few rows that a recurrent step has.

PyTorch's product packs the weights anew in every call, rounds bfloat16's sums, and takes float32 at
half speed on processors that are not Intel's. Here sums are float32. A word is 32 bits: a float32,
or two bfloat16 of a column, one above the other, which the processor multiplies in pairs.
"""

from functools import cache

import torch
from numba.core import config
from numba.core.codegen import get_host_cpu_features
from torch import Tensor

from ptrnet.kernels.numerics import array
from ptrnet.kernels.packed.tiles import COLUMNS, add_product, pack, product
from ptrnet.kernels.threads import even, over_slices

__all__ = ["COLUMNS", "add_product", "available", "linear", "pack", "product"]

# Multiplications for which a slice is worth a thread of its own: some 70 microseconds.
SERIAL = 2**23


@cache
def available(dtype: torch.dtype) -> bool:
    """Whether the processor has the instructions, and numba may use them.

    bfloat16: not where there are matrix tiles (AMX) as well, which PyTorch takes.
    """
    other = config.CPU_NAME or config.CPU_FEATURES or config.DISABLE_JIT  # type: ignore[attr-defined]
    features = get_host_cpu_features().split(",")
    has = {
        torch.bfloat16: "+avx512bf16" in features and "+amx-bf16" not in features,
        torch.float32: "+avx512f" in features,
    }
    return not other and has.get(dtype, False)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """`x W'` for float32 x `(..., K)` and W `(N, K)`, without gradients; a slice on each core."""
    rows, columns = x.numel() // x.shape[-1], len(weight)
    packed = pack(array(weight).T)
    found = torch.empty(rows, COLUMNS * len(packed), dtype=torch.float32)
    a, out = array(x).reshape(rows, -1), array(found)

    def run(_: int, first: int, last: int) -> None:
        product(a[first:last], packed, out[first:last])

    over_slices(run, even(rows, rows * weight.numel() // SERIAL))
    return found[:, :columns].view(*x.shape[:-1], columns)
