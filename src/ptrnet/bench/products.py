"""The matrix products of some work, recorded as it is done once, to be timed without the rest.

While they are recorded models take their plain formulas (`kernels/eager.py`), whose products
PyTorch sees; and oneDNN, whose LSTM layer shows none, takes the products only.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
# Where the two matrices, or batches of matrices, stand among the arguments.
_LEFT = {
    _aten.mm.default: 0,
    _aten.bmm.default: 0,
    _aten.addmm.default: 1,
    _aten.baddbmm.default: 1,
}


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
        """Multiplications and additions."""
        rows = 2.0 * self.right.shape[-1]
        for length in self.left.shape:
            rows *= length
        return rows


def record_products(work: Callable[[], object]) -> Counter[Product]:
    """The products that `work` takes, and how often; those without any numbers are left out.

    Products of a matrix and a vector are none: they take as long as reading the matrix.
    """
    recorder = _Recorder()
    with _onednn(False), recorder:
        work()
    return recorder.products


@contextmanager
def _onednn(enabled: bool) -> Iterator[None]:
    """A context in which PyTorch takes oneDNN's operations, or not.

    `torch.backends.mkldnn.flags` would set TF32, too.
    """
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.set_flags(enabled)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(before)  # type: ignore[no-untyped-call]


class ProductsAlone:
    """Takes the same products, one after the other, of numbers that are ready.

    Operands of one layout share their numbers, which therefore stay in the caches where they fit.
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
    """Records products below autograd and autocast, in the types that these have chosen."""

    looks_on = True  # what remains after a cut is found by values

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
