"""Algorithms that compute answers: NumPy and numba, no torch. One file each, found by its name.

Each file has a `label(inputs)` that takes `(B, n, d)` float64, the instances of one size, and
gives their `Answers`.
"""

import importlib
import pkgutil
from collections.abc import Callable

from ptrnet.errors import unknown
from ptrnet.types import Answers, Floats

Labeller = Callable[[Floats], Answers]


def names() -> list[str]:
    """The known labellers, as they are spelled on the command line."""
    return sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(__path__))


def get(name: str) -> Labeller:
    """The labeller of that name. Raises InputError, with the nearest name, for an unknown one."""
    if name not in names():
        raise unknown("labeller", name, names())
    label: Labeller = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").label
    return label
