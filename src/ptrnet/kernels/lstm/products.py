"""The products of an LSTM's steps: rows of a sequence, one step after the other, by one matrix.

Four classes do that, with one interface. `Avx512Products`, `Avx2Products` and `AmxProducts` pack
the matrix once, sum in float32 and are faster, but only on some processors and for some sizes;
`TorchProducts` is PyTorch's product, whose sums are rounded to the matrix's type. `products_class`
says which to take.

The threads that share a batch share one object. Each thread has a buffer of its own for the rows of
its slice, into which every product is written. Sequences are step first, `(N, B, ...)`.
"""

from abc import ABC, abstractmethod
from types import ModuleType
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet.kernels import packed
from ptrnet.kernels.numerics import as_array, as_strided_array
from ptrnet.kernels.packed import amx, avx2, avx512


class Buffer(NamedTuple):
    """The products of a slice's rows, `(rows, at least d_out)`: one memory under two types."""

    tensor: Tensor
    array: np.ndarray  # the same memory for compiled code, bfloat16 as uint16


class Products(ABC):
    """Products of the rows of a sequence with a matrix.

    Args:
        sequence: `(N, B, d_in)`, contiguous, float32 or bfloat16. It is not copied: a step's rows
            may be written just before they are multiplied.
        matrix: `(d_in, d_out)` of the same type, with any strides.
    """

    @abstractmethod
    def __init__(self, sequence: Tensor, matrix: Tensor) -> None: ...

    @abstractmethod
    def buffer(self, rows: int) -> Buffer:
        """Memory for the products of so many rows, zero at first."""

    @abstractmethod
    def multiply(self, t: int, first: int, last: int, out: Buffer) -> None:
        """Writes `sequence[t, first:last] @ matrix` to `out`, which has `last - first` rows."""

    @abstractmethod
    def multiply_add(self, t: int, first: int, last: int, out: Buffer) -> None:
        """Adds `sequence[t, first:last] @ matrix` to `out`."""


class _PackedProducts(Products):
    """By a compiled kernel, with the matrix packed once; its buffers are float32."""

    kernel: ClassVar[ModuleType]

    def __init__(self, sequence: Tensor, matrix: Tensor) -> None:
        self._rows = as_array(sequence)
        self._panels = self.kernel.pack(as_strided_array(matrix))

    def buffer(self, rows: int) -> Buffer:
        columns = len(self._panels) * self.kernel.PANEL_COLUMNS
        return _zeros(rows, columns, torch.float32)

    def multiply(self, t: int, first: int, last: int, out: Buffer) -> None:
        self.kernel.multiply(self._rows[t, first:last], self._panels, out.array)

    def multiply_add(self, t: int, first: int, last: int, out: Buffer) -> None:
        self.kernel.multiply_add(self._rows[t, first:last], self._panels, out.array)


class Avx512Products(_PackedProducts):
    """By vectors of 512 bits, of float32 or bfloat16."""

    kernel: ClassVar[ModuleType] = avx512


class Avx2Products(_PackedProducts):
    """By vectors of 256 bits, of float32."""

    kernel: ClassVar[ModuleType] = avx2


class AmxProducts(_PackedProducts):
    """By the matrix tiles of Intel's processors, of bfloat16."""

    kernel: ClassVar[ModuleType] = amx


class TorchProducts(Products):
    """By PyTorch; its buffers have the matrix's type."""

    def __init__(self, sequence: Tensor, matrix: Tensor) -> None:
        self._rows, self._matrix = sequence, matrix

    def buffer(self, rows: int) -> Buffer:
        return _zeros(rows, self._matrix.shape[1], self._matrix.dtype)

    def multiply(self, t: int, first: int, last: int, out: Buffer) -> None:
        torch.mm(self._rows[t, first:last], self._matrix, out=out.tensor)

    def multiply_add(self, t: int, first: int, last: int, out: Buffer) -> None:
        out.tensor.addmm_(self._rows[t, first:last], self._matrix)


def products_class(units: int, features: int, dtype: torch.dtype) -> type[Products]:
    """The faster class that can serve a layer.

    Args:
        units: hidden units of the layer, H.
        features: of the inputs, d, if they are multiplied by such products too, else 0.
        dtype: of the products.
    """
    if can_use_amx(units, features, dtype):
        return AmxProducts
    return vector_products(units, features, dtype) or TorchProducts


def can_use_amx(units: int, features: int, dtype: torch.dtype) -> bool:
    """Whether `AmxProducts` can serve a layer on this processor; see `products_class`."""
    # The tiles take whole steps: of a depth in between the last would read beyond the row.
    fills_tiles = units % amx.STEP_DEPTH == 0 and features % amx.STEP_DEPTH == 0
    return dtype == torch.bfloat16 and fills_tiles and packed.has_amx()


def vector_products(units: int, features: int, dtype: torch.dtype) -> type[Products] | None:
    """The class by vectors that can serve a layer on this processor; see `products_class`."""
    kernel = packed.vector_kernel(dtype)
    # bfloat16 is multiplied by pairs of rows of the matrix; and where the last panel is not filled,
    # the zeros that fill it up are multiplied, too.
    if kernel is None or (dtype == torch.bfloat16 and features % 2):
        return None
    if 4 * units % kernel.PANEL_COLUMNS:
        return None
    return Avx2Products if kernel is avx2 else Avx512Products


def _zeros(rows: int, columns: int, dtype: torch.dtype) -> Buffer:
    tensor = torch.zeros(rows, columns, dtype=dtype)
    return Buffer(tensor, as_array(tensor))
