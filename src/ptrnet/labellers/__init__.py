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

`compiled.py`, `cuts.py`, `edge_queue.py`, `rules.py` and `tours.py` are shared code, not labellers.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, check_package, unknown
from ptrnet.geometry.distances import EUCLIDEAN, EXPLICIT, is_directed
from ptrnet.plugins import Registry, load
from ptrnet.types import CLOSED, Floats, Indices, TourRules

if TYPE_CHECKING:
    from ptrnet.tasks.base import Task

Labeller = Callable[..., Sequence[Indices]]


def _check(name: str, module: Any) -> None:
    if not callable(getattr(module, "label", None)):
        raise InputError(f"register a labeller: expected a module with `label`, got {module!r}")


_NO_LABELLERS = ("compiled", "cuts", "edge_queue", "rules", "tours")
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


def names_for(task: "Task") -> tuple[str, ...]:
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


def is_plain(inputs: Floats, distance: str, rules: TourRules) -> bool:
    """Whether tours are closed and have no rules, and no distance depends on the direction."""
    return rules == CLOSED and not (distance == EXPLICIT and is_directed(inputs).any())


def takes_rules(name: str) -> bool:
    """Whether a labeller takes `TourRules`, and distances that depend on the direction."""
    return bool(getattr(_module(name), "TAKES_RULES", False))


def is_heuristic(name: str) -> bool:
    """Whether the answers of a labeller are good, but not known to be best."""
    return bool(getattr(_module(name), "HEURISTIC", False))


def failure(name: str) -> str:
    """Return the error message for an instance to which a labeller gave an empty answer."""
    return str(getattr(_module(name), "FAILURE", "no answer was found"))


def draw(
    task: "Task", rng: np.random.Generator, count: int, n: int, labeller: str | None = None
) -> tuple[Floats, list[Indices] | None]:
    """Draw instances `(count, n, d)`, and their answers if the task draws them, too.

    See `Facts.drawn_in_order`. The answers are None if a labeller is named, which has to compute
    them.
    """
    inputs = task.sample(rng, count, n)
    if not task.facts.drawn_in_order:
        return inputs, None
    order = rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)
    shuffled = np.take_along_axis(inputs, order[..., None], 1)
    return shuffled, list(np.argsort(order, axis=1)) if labeller is None else None


def label(
    task: "Task", inputs: Floats, labeller: str | None = None, distance: str = EUCLIDEAN
) -> Sequence[Indices]:
    """Compute the answers to instances, in canonical form.

    Args:
        task: the task of the instances.
        inputs: `(B, n, d)` instances of one size.
        labeller: the name of the algorithm; None: the first of the task's labellers.
        distance: the distance between elements, one that the task supports.

    Raises:
        InputError: the labeller does not serve this task, or takes fewer than n elements.

    Examples:
        >>> label(tasks.get("sort"), np.array([[[0.7], [0.2], [0.5]]]))
        [array([1, 2, 0])]
    """
    check_labeller(task, labeller)
    return label_with_proof(task, inputs, labeller, distance)[0]


def label_with_proof(
    task: "Task",
    inputs: Floats,
    labeller: str | None = None,
    distance: str = EUCLIDEAN,
    rules: TourRules = CLOSED,
) -> tuple[Sequence[Indices], NDArray[np.bool_]]:
    """Return the answers of `label`, and `(B,)` booleans: False if a promised proof is missing.

    A labeller that proves its answers may run out of time: `exact` then returns its best tour
    without a proof. If a labeller promises no proofs, all booleans are True.

    Call `check_labeller` first. This function does not check the labeller again, because callers
    label many batches.

    Raises:
        InputError: the labeller takes fewer than n elements, or there are rules or directed
            distances, which it does not take.
    """
    name = labeller or task.facts.labellers[0]
    module = _module(name)
    check_max_elements(task, name, inputs.shape[1])
    options: dict[str, Any] = {} if distance == EUCLIDEAN else {"distance": distance}
    if rules != CLOSED:
        options["rules"] = rules
    if not takes_rules(name) and not is_plain(inputs, distance, rules):
        raise InputError(
            f"labeller {name}: expected a closed tour without rules, and distances that are "
            "equal in both directions; labellers without this limit: "
            f"{', '.join(filter(takes_rules, task.facts.labellers))}"
        )
    read = task.facts.labelled_as(inputs) if task.facts.labelled_as else inputs
    if hasattr(module, "label_with_proof"):
        answers, proved = module.label_with_proof(read, **options)
    else:
        answers, proved = module.label(read, **options), np.ones(len(inputs), bool)
    if is_plugin(name):
        check_answers(task, answers, inputs, f"labeller {name}")
        answers = [np.asarray(outputs, np.int64) for outputs in answers]
    return task.canonicalize(inputs, answers, **options), proved


def check_labeller(task: "Task", labeller: str | None) -> None:
    """Check that a labeller serves a task, and that its package is installed.

    Raises:
        InputError: the labeller does not serve this task; the message has the nearest name.
        MissingExtraError: the labeller needs a package that is not installed.
    """
    own = task.facts.labellers
    if not own:
        raise InputError(
            f"task {task.name} has no labeller: no algorithm computes its answers; train a "
            "model with ptrnet train, and use ptrnet solve"
        )
    name = labeller or own[0]
    if name not in own and name not in names_for(task):
        raise unknown(f"labeller of task {task.name}", name, names_for(task))
    package = getattr(_module(name), "NEEDS", "")
    if package:
        check_package(package, f"labeller {name}", "labels")


def check_max_elements(task: "Task", labeller: str | None, n: int) -> None:
    """Check that a labeller of a task takes n elements.

    Raises:
        InputError: the labeller takes fewer elements. The message names the task's labellers that
            take n elements.
    """
    name = labeller or task.facts.labellers[0]
    if n > max_elements(name):
        others = [other for other in names_for(task) if max_elements(other) >= n]
        raise InputError(
            f"labeller {name}: expected at most {max_elements(name):.0f} elements, got {n}; "
            f"labellers for this size: {', '.join(others) or 'none'}"
        )


def check_answers(task: "Task", answers: Sequence[Any], inputs: Floats, source: str) -> None:
    """Check that answers of a plug-in's labeller are valid answers to `(B, n, d)` instances.

    Accept empty answers, because `ptrnet.labels` reports them.

    Raises:
        InputError: an answer is invalid. The message begins with `source`.
    """
    count, n = inputs.shape[:2]
    if len(answers) != count:
        raise InputError(f"{source}: expected {count} answers, got {len(answers)}")
    size = task.facts.item_size
    shape = ("m",) if size == 1 else ("t", size)
    for k, outputs in enumerate(map(np.asarray, answers)):
        instance = f"{source}: instance {k} of {n} elements: "
        if not outputs.size:
            continue
        if outputs.dtype.kind not in "iu" or outputs.shape[1:] != shape[1:]:
            raise InputError(
                f"{instance}expected whole numbers ({', '.join(map(str, shape))}), got "
                f"{outputs.dtype} {outputs.shape}"
            )
        outside = outputs[(outputs < 0) | (outputs >= n)]
        if outside.size:
            raise InputError(f"{instance}expected 0 to {n - 1}, got {outside[0]}")
        complaint = task.answer_error(n, outputs) or task.infeasible([inputs[k]], [outputs])[0]
        if complaint:
            raise InputError(f"{instance}{complaint}")
        num_tokens, longest = len(task.to_tokens([outputs])[0]) - 1, task.max_length(n)
        if num_tokens > longest:
            raise InputError(f"{instance}expected at most {longest} tokens, got {num_tokens}")


def unproved(name: str) -> str:
    """Return the message about an answer that a labeller could not prove."""
    return str(getattr(_module(name), "UNPROVED", "the answer is not proved"))


@cache  # called several times for every batch; a look-up in the registry takes 20 microseconds
def _module(name: str) -> ModuleType:
    module: ModuleType = _registry.get(name)
    return module
