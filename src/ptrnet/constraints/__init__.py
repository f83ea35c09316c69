"""What an answer may be, token by token: one constraint for each kind of answer."""

from ptrnet.constraints.apexes import Apexes
from ptrnet.constraints.base import Constraint
from ptrnet.constraints.closed_subset import ClosedSubset
from ptrnet.constraints.subset import Free, Permutation, Subset, Tour
from ptrnet.constraints.triangles import Triangles

__all__ = [
    "Apexes",
    "ClosedSubset",
    "Constraint",
    "Free",
    "Permutation",
    "Subset",
    "Tour",
    "Triangles",
]
