"""Writing `.npy` files row by row, whose number of rows is known at the end."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray


class NpyWriter:
    """A new `.npy` file to which rows are appended; a context manager that completes the file.

    Args:
        path: of the file.
        dtype: of its numbers.
        row: the shape of a row; `()` if rows are single numbers.
    """

    def __init__(self, path: Path, dtype: DTypeLike, row: tuple[int, ...] = ()) -> None:
        self.dtype, self.row, self.count = np.dtype(dtype), row, 0
        self._stream = path.open("wb")
        self._write_header()

    def append(self, rows: NDArray[Any]) -> None:
        """Adds rows, `(num_rows, *row)`, cast to the file's dtype."""
        self._stream.write(np.ascontiguousarray(rows, self.dtype).tobytes())
        self.count += len(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stream:
            # NumPy's header leaves room for the first axis to grow: the new one is as long.
            self._stream.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        npy.write_array_header_1_0(
            self._stream,
            {
                "descr": npy.dtype_to_descr(self.dtype),
                "fortran_order": False,
                "shape": (self.count, *self.row),
            },
        )
