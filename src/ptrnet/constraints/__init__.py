"""Constraints: classes that decide which tokens may come next, one class per kind of answer."""

from ptrnet.constraints.base import Constraint
from ptrnet.constraints.sets import (
    Anything,
    Begun,
    ClosedSubset,
    Free,
    Permutation,
    Subset,
    Tour,
)
from ptrnet.constraints.triangulations import Apexes, Triangles

__all__ = [
    "Anything",
    "Apexes",
    "Begun",
    "ClosedSubset",
    "Constraint",
    "Free",
    "Permutation",
    "Subset",
    "Tour",
    "Triangles",
]
