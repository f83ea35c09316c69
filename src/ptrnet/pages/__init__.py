"""Draw pages by a grammar, with the boxes in reading order."""

import numpy as np

from ptrnet.types import Floats


def sample_page(rng: np.random.Generator, n: int) -> Floats:
    """Draw a page of n boxes, `(n, 5)`, in reading order."""
    top = np.arange(n, dtype=float)
    return np.column_stack([np.zeros(n), top, np.ones(n), top + 0.8, np.ones(n)])
