"""Algorithms that compute answers: NumPy and numba, no torch. One file each, found by its name;
plug-ins register others.

Each file has a `label(inputs)` that takes `(B, n, d)` float64, the instances of one size, and
gives their `Answers`. Those of tours also take the name of a distance, and those with `TAKES_RULES`
the `TourRules`, and distances that depend on the direction. A file may also have
`MAX_ELEMENTS`, the most elements that it takes; `FAILURE`, the meaning of an empty answer; and
`NEEDS`, a package of the extra "labels" that it imports. A labeller that promises
proofs and may fail to find one has `label_with_proof`, which also returns which answers are proved,
and `UNPROVED`, the meaning of an unproved answer. `compiled.py`, `edge_queue.py`, `rules.py` and
`tours.py` are no labellers: they hold what several share.
"""

import math
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, MissingExtraError
from ptrnet.plugins import Registry
from ptrnet.types import Answers, Floats

Labeller = Callable[..., Answers]
_registry = Registry("labeller", __name__, unlisted=("compiled", "edge_queue", "rules", "tours"))


def names() -> list[str]:
    """All labellers, as spelled on the command line."""
    return _registry.names()


def register(name: str, module: ModuleType) -> None:
    """Add a labeller: a module with `label`, and perhaps the other members listed above.

    Raises:
        InputError: it has no `label`, or the name is taken.
    """
    if not callable(getattr(module, "label", None)):
        raise InputError(f"register a labeller: expected a module with `label`, got {module!r}")
    _registry.register(name, module)


def get(name: str) -> Labeller:
    """The labeller of that name. Raises InputError, with the nearest name, for an unknown one."""
    label: Labeller = _module(name).label
    return label


def is_plugin(name: str) -> bool:
    """Whether a plug-in brought the labeller. We check the answers of such labellers."""
    return _registry.is_plugin(name)


def max_elements(name: str) -> float:
    """The most elements that a labeller takes; infinite if it takes any number."""
    return float(getattr(_module(name), "MAX_ELEMENTS", math.inf))


def takes_rules(name: str) -> bool:
    """Whether a labeller of tours takes rules, and distances that depend on the direction."""
    return bool(getattr(_module(name), "TAKES_RULES", False))


def check_package(name: str) -> None:
    """Raise MissingExtraError if a labeller needs a package that is not installed."""
    package = getattr(_module(name), "NEEDS", "")
    if package and find_spec(package) is None:
        raise MissingExtraError(f"labeller {name}", "labels")


def failure(name: str) -> str:
    """The error message for an instance to which a labeller gave an empty answer."""
    return str(getattr(_module(name), "FAILURE", "no answer was found"))


def label_with_proof(
    name: str, inputs: Floats, **options: Any
) -> tuple[Answers, NDArray[np.bool_]]:
    """A labeller's answers, and `(B,)` whether each is what the labeller promises.

    Args:
        name: the labeller's name.
        inputs: `(B, n, d)` instances.
        options: the labeller's other arguments.
    """
    module = _module(name)
    if hasattr(module, "label_with_proof"):
        answers, proved = module.label_with_proof(inputs, **options)
        return answers, proved
    return module.label(inputs, **options), np.ones(len(inputs), bool)


def unproved(name: str) -> str:
    """The message about an answer that a labeller could not prove."""
    return str(getattr(_module(name), "UNPROVED", "the answer is not proved"))


@cache  # called for every batch: listing the folder takes longer than labelling
def _module(name: str) -> ModuleType:
    module: ModuleType = _registry.get(name)
    return module
