"""Products with weights that were packed once, for the few rows that a recurrent step has.

PyTorch's product packs the weights again in every call, rounds bfloat16's sums, and takes float32
at half speed on processors that are not Intel's. Here they are packed once, and sums are float32.
`avx512.py` does so by vectors of 512 bits, `amx.py` by Intel's matrix tiles; each draws how.
"""

from functools import cache

import torch
from numba.core import config
from numba.core.codegen import get_host_cpu_features
from torch import Tensor

from ptrnet.kernels.numerics import as_array
from ptrnet.kernels.packed import amx
from ptrnet.kernels.packed.avx512 import PANEL_COLUMNS, multiply, pack
from ptrnet.kernels.threads import even_cuts, run_slices

__all__ = ["has_amx", "linear", "prefers_avx512"]

# Multiplications from which a slice is worth a thread: some 70 microseconds.
MIN_MULTIPLICATIONS = 2**23


@cache
def prefers_avx512(dtype: torch.dtype) -> bool:
    """Whether products of a type are fastest by `avx512.py`, and numba may compile them.

    No for bfloat16 where there is AMX: it is faster, and PyTorch uses it for the sizes that
    `amx.py` does not serve. No for every type but float32 and bfloat16.
    """
    features = get_host_cpu_features().split(",")
    instructions = {
        torch.bfloat16: "+avx512bf16" in features and not amx.is_permitted(),
        torch.float32: "+avx512f" in features,
    }
    return not is_restricted() and instructions.get(dtype, False)


def has_amx() -> bool:
    """Whether products of bfloat16 may be taken by `amx.py`."""
    return not is_restricted() and amx.is_permitted()


def is_restricted() -> bool:
    """Whether numba was told to compile for another processor, or not at all."""
    return bool(config.CPU_NAME or config.CPU_FEATURES or config.DISABLE_JIT)  # type: ignore[attr-defined]


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """`x W'`, `(..., d_out)` of float32 x `(..., d_in)` and W `(d_out, d_in)` on the CPU.

    No gradients; a slice of the rows on each thread. Only where `prefers_avx512(torch.float32)`.
    Nothing is checked.
    """
    rows, columns = x.numel() // x.shape[-1], len(weight)
    panels = pack(as_array(weight).T)
    product = torch.empty(rows, PANEL_COLUMNS * len(panels), dtype=torch.float32)
    a, out = as_array(x).reshape(rows, -1), as_array(product)

    def run(_: int, first: int, last: int) -> None:
        multiply(a[first:last], panels, out[first:last])

    run_slices(run, even_cuts(rows, rows * weight.numel() // MIN_MULTIPLICATIONS))
    return product[:, :columns].view(*x.shape[:-1], columns)
