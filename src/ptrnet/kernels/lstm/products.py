"""The products of an LSTM's steps: rows of a sequence, one step after the other, by one matrix.

Two classes do that, with one interface. `PackedProducts` sums in float32 and is faster, but only
on some processors and for some sizes; `TorchProducts` is PyTorch's product, whose sums are rounded
to the matrix's type. `products_class` says which to take.

Both are shared by the threads that share a batch: each thread has a buffer for the rows of its
slice, and every product overwrites that buffer. Sequences are step first, `(N, B, ...)`.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet.kernels import packed
from ptrnet.kernels.numerics import as_array, as_strided_array


class Buffer(NamedTuple):
    """The sums of a slice's rows, `(rows, at least d_out)`: one memory, seen in two ways."""

    tensor: Tensor
    array: np.ndarray  # for compiled code, bfloat16 as uint16


class Products(ABC):
    """Products of the rows of a sequence with a matrix.

    Args:
        sequence: `(N, B, d_in)`, contiguous, float32 or bfloat16; what is multiplied is its memory,
            which may be written between one step and the next.
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


class PackedProducts(Products):
    """By the compiled kernel, with the matrix packed once; its buffers are float32."""

    def __init__(self, sequence: Tensor, matrix: Tensor) -> None:
        self._rows = as_array(sequence)
        self._panels = packed.pack(as_strided_array(matrix))

    def buffer(self, rows: int) -> Buffer:
        columns = len(self._panels) * packed.PANEL_COLUMNS
        return _zeros(rows, columns, torch.float32)

    def multiply(self, t: int, first: int, last: int, out: Buffer) -> None:
        packed.multiply(self._rows[t, first:last], self._panels, out.array)

    def multiply_add(self, t: int, first: int, last: int, out: Buffer) -> None:
        packed.multiply_add(self._rows[t, first:last], self._panels, out.array)


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
    """The class for a layer of so many units, for products of that type.

    `features` are the inputs' if they are multiplied too, else 0.
    """
    return PackedProducts if can_pack(units, features, dtype) else TorchProducts


def can_pack(units: int, features: int, dtype: torch.dtype) -> bool:
    """Whether `PackedProducts` can serve: the sizes of `products_class`, and the processor."""
    has_pairs = dtype != torch.bfloat16 or features % 2 == 0
    fills_panels = 4 * units % packed.PANEL_COLUMNS == 0
    return has_pairs and fills_panels and packed.available(dtype)


def _zeros(rows: int, columns: int, dtype: torch.dtype) -> Buffer:
    tensor = torch.zeros(rows, columns, dtype=dtype)
    return Buffer(tensor, as_array(tensor))
