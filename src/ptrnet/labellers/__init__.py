"""Labellers: algorithms that compute answers. They use NumPy and numba, not torch.

The built-in labeller `held-karp` is the file `held_karp.py`, and so on. Plug-ins register more.
A labeller is a module with

- `label(inputs)`: takes instances of one size, `(B, n, d)` float64, and returns
  their B answers: a sequence of arrays of 0-based indices, `(m,)` or `(t, item_size)`.
  Labellers of the task `tsp` also take the name of a distance;
- `TAKES_RULES` (optional): whether `label` also takes `TourRules`, and distances that depend on the
  direction;
- `MAX_ELEMENTS` (optional): the maximum number of elements;
- `FAILURE` (optional): the error message for an empty answer;
- `HEURISTIC` (optional): True if the answers are good, but not known to be best;
- `NEEDS` (optional): a package of the extra "labels" that the labeller imports;
- `label_with_proof` and `UNPROVED` (optional): for a labeller that promises proofs and may fail to
  find a proof. `label_with_proof` returns the answers, and `(B,)` booleans: whether each answer is
  proved to be best. `UNPROVED` is the message about an unproved answer.

`compiled.py`, `edge_queue.py`, `rules.py` and `tours.py` are shared code, not labellers.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, MissingExtraError
from ptrnet.plugins import Registry, load
from ptrnet.types import Floats, Indices

Labeller = Callable[..., Sequence[Indices]]


def _check(name: str, module: Any) -> None:
    if not callable(getattr(module, "label", None)):
        raise InputError(f"register a labeller: expected a module with `label`, got {module!r}")


_NO_LABELLERS = ("compiled", "edge_queue", "rules", "tours")
_registry = Registry("labeller", __name__, _NO_LABELLERS, check=_check)
_of_task: dict[str, list[str]] = {}  # the labellers that plug-ins add to a task, by its name


def names() -> list[str]:
    """Return the names of all labellers, as spelled on the command line."""
    return _registry.names()


def register(name: str, module: ModuleType | str, task: str = "") -> None:
    """Add a labeller.

    Args:
        name: for the command line and recipes, such as "mine".
        module: a module with `label`, and any of the optional members listed above. Or the name of
            such a module, which is then imported when the labeller is used.
        task: the name of a task that gets this labeller in addition to its own. Empty: only tasks
            that list the labeller have it.

    Raises:
        InputError: the module has no `label`, or the name is taken.

    Examples:
        >>> import my_labeller
        >>> labellers.register("mine", my_labeller, task="tsp")
    """
    _registry.register(name, module)
    if task and name not in (added := _of_task.setdefault(task, [])):
        added.append(name)


def names_for(task: Any) -> tuple[str, ...]:
    """Return the names of a task's labellers: its own, then those that plug-ins add."""
    load()
    return (*task.facts.labellers, *_of_task.get(task.name, ()))


def get(name: str) -> Labeller:
    """Return the function `label` of a labeller.

    Raises:
        InputError: the name is unknown; the message has the nearest name.

    Examples:
        >>> labellers.get("argsort")(np.array([[[0.3], [0.1], [0.2]]]))
        [array([1, 2, 0])]
    """
    label: Labeller = _module(name).label
    return label


def is_plugin(name: str) -> bool:
    """Whether a plug-in registered the labeller. We check the answers of plug-ins."""
    return _registry.is_plugin(name)


def max_elements(name: str) -> float:
    """Return the maximum number of elements of a labeller; infinity without a maximum."""
    return float(getattr(_module(name), "MAX_ELEMENTS", math.inf))


def takes_rules(name: str) -> bool:
    """Whether a labeller takes `TourRules`, and distances that depend on the direction."""
    return bool(getattr(_module(name), "TAKES_RULES", False))


def is_heuristic(name: str) -> bool:
    """Whether the answers of a labeller are good, but not known to be best."""
    return bool(getattr(_module(name), "HEURISTIC", False))


def check_package(name: str) -> None:
    """Raise MissingExtraError if a labeller needs a package that is not installed."""
    package = getattr(_module(name), "NEEDS", "")
    if package and find_spec(package) is None:
        raise MissingExtraError(f"labeller {name}", "labels")


def failure(name: str) -> str:
    """Return the error message for an instance to which a labeller gave an empty answer."""
    return str(getattr(_module(name), "FAILURE", "no answer was found"))


def label_with_proof(
    name: str, inputs: Floats, **options: Any
) -> tuple[Sequence[Indices], NDArray[np.bool_]]:
    """Return a labeller's answers, and `(B,)` booleans: False if a promised proof is missing.

    If a labeller does not promise proofs, all its booleans are True.

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
    """Return the message about an answer that a labeller could not prove."""
    return str(getattr(_module(name), "UNPROVED", "the answer is not proved"))


@cache  # called several times for every batch; a look-up in the registry takes 20 microseconds
def _module(name: str) -> ModuleType:
    module: ModuleType = _registry.get(name)
    return module
