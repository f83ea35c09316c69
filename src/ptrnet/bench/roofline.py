"""The least time that this machine could take for some work.

That is the number of operations at the best rate measured here (`product`), or the time of the
work's matrix products alone (`record_products` and `ProductsAlone`). Both are timed as sides in the
same rounds as the work.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_SIDE = {"cpu": 2048, "cuda": 8192}  # of a product that is large enough to reach the best rate
_aten = torch.ops.aten
# The position of the left factor among the arguments; the right one follows it.
_LEFT = {
    _aten.mm.default: 0,
    _aten.bmm.default: 0,
    _aten.addmm.default: 1,
    _aten.baddbmm.default: 1,
}


def product(dtype: torch.dtype, device: str) -> tuple[Callable[[], object], float]:
    """A large product of matrices, and its number of floating-point operations."""
    size = _SIDE[device]
    a, b = (torch.rand(size, size, device=device).to(dtype) for _ in range(2))
    return lambda: a @ b, 2.0 * size**3


def operations(batch: int, units: int, elements: int, slots: int, steps: float) -> float:
    """Floating-point operations of a Ptr-Net's forward pass; its backward pass has twice as many.

    A step of an LSTM is an `H x 4H` product, a projection to a key or a query an `H x H` one. The
    products with coordinates are left out, because they are small.
    """
    return 2.0 * batch * units**2 * (4 * (elements + steps) + slots + steps)


class Operand(NamedTuple):
    """The layout and the type of a tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> Self:
        return cls(tuple(tensor.shape), tensor.stride(), tensor.dtype)

    def fill(self, device: str) -> Tensor:
        """A random tensor of this layout and type."""
        steps = zip(self.shape, self.strides, strict=True)
        size = 1 + sum((length - 1) * stride for length, stride in steps)
        numbers = torch.rand(size, device=device).to(self.dtype)
        return numbers.as_strided(self.shape, self.strides)


class Product(NamedTuple):
    """A product of two matrices `(m, k)` and `(k, n)`, or of two batches of matrices."""

    left: Operand
    right: Operand

    @property
    def operations(self) -> float:
        """The number of multiplications and additions."""
        rows = 2.0 * self.right.shape[-1]
        for length in self.left.shape:
            rows *= length
        return rows


def record_products(work: Callable[[], object]) -> Counter[Product]:
    """Run `work` once, and count the matrix products that it computes.

    Empty products are left out, and products of a matrix and a vector, which take as long as
    reading the matrix. While we record, models use their plain formulas (`kernels/eager.py`), whose
    products PyTorch sees, and oneDNN computes only the products, because its LSTM layer hides them.
    """
    recorder = _Recorder()
    with _onednn(False), recorder:
        work()
    return recorder.products


@contextmanager
def _onednn(enabled: bool) -> Iterator[None]:
    """A context in which PyTorch uses oneDNN, or does not.

    `torch.backends.mkldnn.flags` would also set TF32.
    """
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.set_flags(enabled)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(before)  # type: ignore[no-untyped-call]


class ProductsAlone:
    """Computes recorded products one after the other, with numbers that are prepared beforehand.

    Operands of the same layout share their numbers, so these stay in the caches if they fit.
    """

    def __init__(self, products: Mapping[Product, int], device: str) -> None:
        operands = {operand for product in products for operand in product}
        ready = {operand: operand.fill(device) for operand in operands}
        self._pairs = [(ready[p.left], ready[p.right], count) for p, count in products.items()]

    def __call__(self) -> None:
        for left, right, count in self._pairs:
            for _ in range(count):
                left @ right


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records products below autograd and autocast, so in the types that these have chosen."""

    looks_on = True  # for kernels/eager.py: models may read values while we record

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: Counter[Product] = Counter()

    def __torch_dispatch__(
        self,
        operation: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if operation not in _LEFT:
            return operation(*args, **(kwargs or {}))
        first = _LEFT[operation]
        left, right = args[first : first + 2]
        if left.numel() and right.numel():
            self.products[Product(Operand.of(left), Operand.of(right))] += 1
        with _onednn(True):
            return operation(*args, **(kwargs or {}))
