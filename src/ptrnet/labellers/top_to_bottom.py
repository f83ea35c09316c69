"""Reading order: boxes by their top, then by their left side.

This is what programs do that know nothing of columns.
"""

from ptrnet.labellers import cuts
from ptrnet.types import Floats, Indices

HEURISTIC = True


def label(inputs: Floats) -> list[Indices]:
    """Return the orders of pages `(B, n, 5)`."""
    return [cuts.top_to_bottom(boxes) for boxes in inputs]
