"""Sorting: the indices of the numbers in increasing order; equal numbers in order of index."""

import numpy as np

from ptrnet.types import Answers, Floats


def label(inputs: Floats) -> Answers:
    """Answers for `(B, n, 1)` numbers."""
    batch, n, _ = inputs.shape
    order = np.argsort(inputs[:, :, 0], axis=1, kind="stable")
    return Answers(order.astype(np.int64), np.full(batch, n, np.int64))
