"""The tasks, one file for each. Plug-ins can register more.

Problems (`ptrnet.problems`) are tasks, too, and `kind` and `get` accept their names. `names`
leaves out the built-in problems, which need another network (`ptrnet.models.state_ptr_net`).

Examples:
    >>> from ptrnet import tasks
    >>> tasks.get("hull", start="lowest-index").facts.num_features
    2
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from ptrnet.errors import InputError, unknown
from ptrnet.plugins import Registry
from ptrnet.settings import from_mapping, require_settings
from ptrnet.tasks.base import Task

CUSTOM = "custom"  # for a user's own examples: no command takes this name
_NO_TASKS = ("base", "schema", CUSTOM)
_registry = Registry("task", __name__, _NO_TASKS, "TASK")
_problems = Registry(
    "problem",
    "ptrnet.problems",
    ("base", "check", "moves", "rollout_formulas", "rollouts", "routes"),
    "PROBLEM",
)


def names() -> list[str]:
    """The names of built-in tasks and of plug-ins, without built-in problems and `custom`."""
    return _registry.names()


def problem_names() -> list[str]:
    """The names of the built-in problems."""
    return _problems.builtin_names()


def register(cls: type[Task]) -> type[Task]:
    """Register a task by its `name`. Users can then use the task like a built-in task.

    The function can be used as a decorator.

    Raises:
        InputError: `cls` is not derived from `Task`, lacks a member that tasks must define, or has
            a name that is taken.
    """
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        raise InputError(f"register a task: expected a class derived from Task, got {cls!r}")
    missing = [name for name in ("name",) if not hasattr(cls, name)]
    missing += sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"register task {cls.__name__}: expected it to have {', '.join(missing)}")
    require_settings(cls, f"task {cls.name}")
    if cls.name in problem_names():
        raise InputError(f"problem {cls.name!r} is there already; choose another name")
    _registry.register(cls.name, cls)
    return cls


def kind(name: str) -> type[Task]:
    """The class of a task. Raises InputError with the nearest name if the name is unknown."""
    if name == CUSTOM:
        return cast(type[Task], _registry.builtin(CUSTOM))
    if name in problem_names():
        return cast(type[Task], _problems.get(name))
    if name in _registry:
        return cast(type[Task], _registry.get(name))
    raise unknown("task", name, [*names(), *problem_names()])


def get(name: str, /, **settings: Any) -> Task:
    """Make a task with the given settings, and defaults for all others."""
    if name == CUSTOM and not settings:  # no defaults: settings come from examples
        raise unknown("task", name, names())
    return from_mapping(kind(name), settings, f"task {name}")


def recipe_of(name: str) -> Mapping[str, Any]:
    """Return a task's defaults of training options, if they differ from the general defaults."""
    return {} if name == CUSTOM else get(name).facts.recipe


def with_points(task: Task, points: str) -> Task:
    """The task with another setting `points`. Raises InputError if the value is unknown."""
    return replace(task, points=cast(Any, points))
