"""The least time that this machine could take: what has to be computed, at the best rate here.

The rates are measured in the same rounds as the work, as sides beside it.
"""

from collections.abc import Callable

import numpy as np
import torch

from ptrnet.kernels.numerics import reassociating_jit
from ptrnet.kernels.threads import run_slices
from ptrnet.types import Floats

_SIDE = {"cpu": 2048, "cuda": 8192}  # of a product large enough to reach the best rate
_ENTRIES, _TIMES = 4096, 2000  # float32 that stay in the first cache, and how often they are taken


def product(dtype: torch.dtype, device: str) -> tuple[Callable[[], object], float]:
    """A large product of matrices, and its floating-point operations."""
    size = _SIDE[device]
    a, b = (torch.rand(size, size, device=device).to(dtype) for _ in range(2))
    return lambda: a @ b, 2.0 * size**3


def operations(batch: int, units: int, elements: int, slots: int, steps: float) -> float:
    """Floating-point operations of a Ptr-Net's forward pass; a backward pass has twice as many.

    A step of an LSTM is an `H x 4H` product, a projection to a key or a query `H x H`. What the
    coordinates are multiplied with is left out: they are few.
    """
    return 2.0 * batch * units**2 * (4 * (elements + steps) + slots + steps)


def divisions() -> tuple[Callable[[], object], float]:
    """Many `1 / (1 + x)` on every core, and their number."""
    threads = torch.get_num_threads()
    rows = np.ones((threads, _ENTRIES), np.float32)

    def run() -> None:
        run_slices(lambda k, _first, _last: _divide(rows[k], _TIMES), range(threads + 1))

    return run, float(threads * _ENTRIES * _TIMES)


@reassociating_jit
def _divide(x: Floats, times: int) -> None:
    one = x.dtype.type(1)
    for _ in range(times):
        for i in range(x.shape[0]):
            x[i] = one / (one + x[i])
