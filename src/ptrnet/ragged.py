"""Convert between lists of arrays of several lengths and one padded array, without torch."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ptrnet.types import Indices


def pad(rows: Sequence[Indices | Sequence[int]]) -> tuple[Indices, Indices]:
    """Return answers as one array `(B, M)`, flat and padded with 0, and their lengths `(B,)`.

    Examples:
        >>> pad([[2, 0, 1], [1]])
        (array([[2, 0, 1],
               [1, 0, 0]]), array([3, 1]))
    """
    flat = [row.ravel() if isinstance(row, np.ndarray) else np.array(row) for row in rows]
    lengths = np.fromiter(map(len, flat), np.int64, len(flat))
    padded = np.zeros((len(flat), int(lengths.max(initial=0))), np.int64)
    if len(flat):
        padded[real(lengths, padded.shape[1])] = np.concatenate(flat)
    return padded, lengths


def trim(padded: Indices, lengths: Indices) -> list[Indices]:
    """Return the rows `padded[b, :lengths[b]]` of an array `(B, M)` or `(B, M, ...)`."""
    return [row[:length] for row, length in zip(padded, lengths.tolist(), strict=True)]


def real(lengths: Indices, width: int) -> NDArray[np.bool_]:
    """Return `(B, width)` booleans: True for the first `lengths[b]` entries of row b."""
    mask: NDArray[np.bool_] = np.arange(width) < lengths[:, None]
    return mask
