"""The tasks, one file for each. Plug-ins can register more.

The registry has the problems (`ptrnet.problems`), too: `get` makes a task of a problem. `names`
leaves out the built-in problems, which need another network (`ptrnet.models.state_ptr_net`).

Examples:
    >>> from ptrnet import tasks
    >>> tasks.get("hull", start="lowest-index").facts.num_features
    2
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from ptrnet.errors import InputError, unknown
from ptrnet.plugins import Registry
from ptrnet.settings import from_mapping, require_settings, to_mapping
from ptrnet.tasks.base import Task, TaskSettings

T = TypeVar("T", bound=TaskSettings)

CUSTOM = "custom"  # for a user's own examples: no command takes this name
PROBLEMS = "ptrnet.problems"  # the package with a module for each built-in problem
_UNLISTED = ("base", "schema", CUSTOM)
_PARTS_OF_PROBLEMS = ("check", "moves", "rollout_formulas", "rollouts", "routes", "states")
_registry = Registry("task", (__name__, PROBLEMS), (*_UNLISTED, *_PARTS_OF_PROBLEMS), "TASK")


def names() -> list[str]:
    """The names of built-in tasks and of plug-ins, without built-in problems and `custom`."""
    problems = problem_names()
    return [name for name in _registry.names() if name not in problems]


def problem_names() -> list[str]:
    """The names of the built-in problems."""
    return _registry.builtin_names(PROBLEMS)


def register(cls: type[T]) -> type[T]:
    """Register a task or a problem by its `name`. Users can then use it like a built-in task.

    The function can be used as a decorator.

    Raises:
        InputError: `cls` is not derived from `Task` or `Problem`, lacks a member that it must
            define, or has a name that is taken.
    """
    if not (isinstance(cls, type) and issubclass(cls, TaskSettings)):
        raise InputError(f"register a task: expected a class derived from Task, got {cls!r}")
    missing = [name for name in ("name",) if not hasattr(cls, name)]
    missing += sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"register task {cls.__name__}: expected it to have {', '.join(missing)}")
    require_settings(cls, f"task {cls.name}")
    _registry.register(cls.name, cls)
    return cls


def kind(name: str) -> type[TaskSettings]:
    """The class of a task or problem, which has its settings.

    Raises:
        InputError: the name is unknown. The message suggests the nearest name.
    """
    found = _registry.builtin(CUSTOM) if name == CUSTOM else _registry.get(name)
    return cast(type[TaskSettings], found)


def get(name: str, /, **settings: Any) -> Task:
    """Make a task with the given settings, and defaults for all others."""
    if name == CUSTOM and not settings:  # no defaults: settings come from examples
        raise unknown("task", name, names())
    return from_mapping(kind(name), settings, f"task {name}")._task()


def settings_of(task: Task) -> dict[str, Any]:
    """The settings of a task by name, as `get` takes them."""
    return to_mapping(task._settings())


def recipe_defaults(name: str) -> Mapping[str, Any]:
    """Return a task's defaults of training options, if they differ from the general defaults."""
    return {} if name == CUSTOM else get(name).facts.recipe


def with_points(task: Task, points: str) -> Task:
    """The task with another setting `points`. Raises InputError if the value is unknown."""
    return replace(task._settings(), points=cast(Any, points))._task()
