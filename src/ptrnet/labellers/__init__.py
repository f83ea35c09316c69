"""Algorithms that compute answers: NumPy and numba, no torch. One file each, found by its name.

Each file has a `label(inputs)` that takes `(B, n, d)` float64, the instances of one size, and
gives their `Answers`; those of tours also take the name of a distance. A file may also have
`MAX_ELEMENTS`, the most elements that it takes; `FAILURE`, what an empty answer means, where it
gives any; and `NEEDS`, a package of the extra "labels" that it imports. Folders hold what several
files share.
"""

import importlib
import math
import pkgutil
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import ModuleType

from ptrnet.errors import MissingExtraError, unknown
from ptrnet.types import Answers

Labeller = Callable[..., Answers]


def names() -> list[str]:
    """The known labellers, as they are spelled on the command line."""
    return sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(__path__) if not m.ispkg)


def get(name: str) -> Labeller:
    """The labeller of that name. Raises InputError, with the nearest name, for an unknown one."""
    label: Labeller = _module(name).label
    return label


def max_elements(name: str) -> float:
    """The most elements that a labeller takes; infinite where it takes any number."""
    return float(getattr(_module(name), "MAX_ELEMENTS", math.inf))


def check_package(name: str) -> None:
    """Raises MissingExtraError where a labeller needs a package that is not installed."""
    package = getattr(_module(name), "NEEDS", "")
    if package and find_spec(package) is None:
        raise MissingExtraError(f"labeller {name}", "labels")


def failure(name: str) -> str:
    """What it means when the answer of a labeller is empty."""
    return str(getattr(_module(name), "FAILURE", "no answer was found"))


@cache  # called for every batch: listing the folder takes longer than labelling
def _module(name: str) -> ModuleType:
    if name not in names():
        raise unknown("labeller", name, names())
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
