"""Products with weights that were packed once, for the few rows that a recurrent step has.

PyTorch's product packs the weights again in every call, rounds bfloat16's sums, and takes float32
at half to two thirds of the rate of processors that are not Intel's. Here they are packed once, and
sums are float32. `avx512.py` and `avx2.py` do so by vectors of 512 and 256 bits, in tiles that
`vectors.py` draws, `amx.py` by Intel's matrix tiles.
"""

from functools import cache
from types import ModuleType

import torch
from numba.core import config
from numba.core.codegen import get_host_cpu_features
from torch import Tensor

from ptrnet.kernels.numerics import as_array
from ptrnet.kernels.packed import amx, avx2, avx512
from ptrnet.kernels.threads import even_cuts, run_slices

__all__ = ["has_amx", "linear", "vector_kernel"]

# Multiplications from which a slice is worth a thread: some 70 microseconds.
MIN_MULTIPLICATIONS = 2**23


@cache
def vector_kernel(dtype: torch.dtype) -> ModuleType | None:
    """`avx512` or `avx2`, where products of a type are fastest by it; else None.

    None for bfloat16 where there is AMX: it is faster, and PyTorch uses it for the sizes that
    `amx.py` does not serve. None, too, for every type but float32 and bfloat16, and where numba may
    not compile for this processor.
    """
    if is_restricted():
        return None
    features = set(get_host_cpu_features().split(","))
    if dtype == torch.bfloat16:
        return avx512 if "+avx512bf16" in features and not amx.is_permitted() else None
    if dtype != torch.float32:
        return None
    if "+avx512f" in features:
        return avx512
    return avx2 if features >= {"+avx2", "+fma"} else None


def has_amx() -> bool:
    """Whether products of bfloat16 may be taken by `amx.py`."""
    return not is_restricted() and amx.is_permitted()


def is_restricted() -> bool:
    """Whether numba was told to compile for another processor, or not at all."""
    return bool(config.CPU_NAME or config.CPU_FEATURES or config.DISABLE_JIT)  # type: ignore[attr-defined]


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """`x W'`, `(..., d_out)` of float32 x `(..., d_in)` and W `(d_out, d_in)` on the CPU.

    No gradients; a slice of the rows on each thread. Only where there is a
    `vector_kernel(torch.float32)`. Nothing is checked.
    """
    kernel = vector_kernel(torch.float32)
    assert kernel is not None
    rows, columns = x.numel() // x.shape[-1], len(weight)
    panels = kernel.pack(as_array(weight).T)
    product = torch.empty(rows, kernel.PANEL_COLUMNS * len(panels), dtype=torch.float32)
    a, out = as_array(x).reshape(rows, -1), as_array(product)

    def run(_: int, first: int, last: int) -> None:
        kernel.multiply(a[first:last], panels, out[first:last])

    run_slices(run, even_cuts(rows, rows * weight.numel() // MIN_MULTIPLICATIONS))
    return product[:, :columns].view(*x.shape[:-1], columns)
