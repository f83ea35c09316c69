"""The roofline: the least time that this machine could take for some work, on a CPU or a GPU.

The roofline is the number of floating-point operations in the work's matrix products, divided by
the rate of a large product. The large product is timed in the same rounds as the work.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_SIDE = {"cpu": 2048, "cuda": 8192}  # matrices of this size reach the best rate
_aten = torch.ops.aten
# The position of the left factor among the arguments. The right factor follows.
_LEFT = {
    _aten.mm.default: 0,
    _aten.bmm.default: 0,
    _aten.addmm.default: 1,
    _aten.baddbmm.default: 1,
}


def product(dtype: torch.dtype, device: str) -> tuple[Callable[[], object], float]:
    """Return a function that multiplies two large matrices, and its number of operations."""
    size = _SIDE[device]
    a, b = (torch.rand(size, size, device=device).to(dtype) for _ in range(2))
    return lambda: a @ b, 2.0 * size**3


def count_operations(work: Callable[[], object]) -> float:
    """Run `work` once, and count the floating-point operations of its matrix products.

    Products of a matrix and a vector are left out, because reading the matrix limits their speed.

    The counter sees only products that PyTorch computes as separate operations. So while we count,
    models use their plain formulas instead of compiled kernels. oneDNN is on
    only inside the products, because it would run an LSTM layer as a single operation.
    """
    counter = _Counter()
    with _onednn(False), counter:
        work()
    return counter.operations


@contextmanager
def _onednn(enabled: bool) -> Iterator[None]:
    """Turn PyTorch's use of oneDNN on or off within the context.

    We do not use `torch.backends.mkldnn.flags`, because this function would also set TF32.
    """
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.set_flags(enabled)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(before)  # type: ignore[no-untyped-call]


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations of matrix products. Works below autograd, so backward passes count, too."""

    only_observes = True  # see `ptrnet.kernels.can_read_values`

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0.0

    def __torch_dispatch__(
        self,
        operation: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if operation not in _LEFT:
            return operation(*args, **(kwargs or {}))
        left, right = args[_LEFT[operation] :][:2]
        self.operations += 2.0 * math.prod(left.shape) * right.shape[-1]
        with _onednn(True):
            return operation(*args, **(kwargs or {}))
