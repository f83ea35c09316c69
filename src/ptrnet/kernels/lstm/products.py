"""The products of an LSTM's steps: rows of a sequence, one step after the other, by one matrix.

Two classes do that, with one interface. `PackedProducts` packs the matrix once, sums in float32 and
is faster, but only on some processors and for some sizes. `TorchProducts` is PyTorch's product,
whose sums are rounded to the matrix's type. `products_class` says which to take.

The threads that share a batch share one object. Each thread has a buffer of its own for the rows of
its slice, into which every product is written. Sequences are step first, `(N, B, ...)`.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet.kernels import packed
from ptrnet.kernels.numerics import as_array, as_strided_array


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


class PackedProducts(Products):
    """By a compiled kernel, with the matrix packed once; its buffers are float32."""

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
    """The faster class that can serve a layer on this processor.

    Args:
        units: hidden units of the layer, H.
        features: of the inputs, d, if they are multiplied by such products too, else 0.
        dtype: of the products.
    """
    # bfloat16 is multiplied by pairs of rows of the matrix. Where the last panel is not filled, the
    # zeros that fill it up are multiplied, too.
    fills_words = dtype != torch.bfloat16 or features % 2 == 0
    fills_panels = 4 * units % packed.PANEL_COLUMNS == 0
    can_pack = fills_words and fills_panels and packed.can_multiply(dtype)
    return PackedProducts if can_pack else TorchProducts


def _zeros(rows: int, columns: int, dtype: torch.dtype) -> Buffer:
    tensor = torch.zeros(rows, columns, dtype=dtype)
    return Buffer(tensor, as_array(tensor))
