"""Sorting: indices of numbers in increasing order. Equal numbers keep their order."""

import numpy as np

from ptrnet.types import Floats, Indices


def label(inputs: Floats) -> list[Indices]:
    """Return the order of numbers `(B, n, 1)`."""
    return list(np.argsort(inputs[:, :, 0], axis=1, kind="stable").astype(np.int64))
