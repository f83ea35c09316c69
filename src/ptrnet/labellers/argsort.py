"""Sorting: indices of numbers in increasing order. Equal numbers keep their order."""

import numpy as np

from ptrnet.types import Answers, Floats


def label(inputs: Floats) -> Answers:
    """Return the order of numbers `(B, n, 1)`."""
    batch, n, _ = inputs.shape
    order = np.argsort(inputs[:, :, 0], axis=1, kind="stable")
    return Answers(order.astype(np.int64), np.full(batch, n, np.int64))
