"""The tasks. One file a task, found by its name; plug-ins register others.

Problems (`ptrnet.problems`) are tasks, too: `kind` and `get` know them, `names` leaves the built-in
ones out, because they are served by a model of their own.
"""

from dataclasses import replace
from typing import Any, cast

from ptrnet.errors import InputError, unknown
from ptrnet.plugins import Registry
from ptrnet.settings import from_mapping, require_settings
from ptrnet.tasks.base import Task

CUSTOM = "custom"  # of a user's own examples: a model may serve it, no verb names it
_NO_TASKS = ("base", "schema", CUSTOM)
_registry = Registry("task", __name__, _NO_TASKS, "TASK")
_problems = Registry("problem", "ptrnet.problems", ("base", "check", "routes"), "PROBLEM")


def names() -> list[str]:
    """The tasks that draw instances: the reference tasks, and those of plug-ins."""
    return _registry.names()


def problem_names() -> list[str]:
    """The built-in problems."""
    return _problems.names()


def register(cls: type[Task]) -> type[Task]:
    """Register a task by its `name`, also as a decorator. It is then used like a built-in one.

    Raises:
        InputError: `cls` is not derived from `Task`, lacks what a task must define, or has a name
            that is taken.
    """
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        raise InputError(f"register a task: expected a class derived from Task, got {cls!r}")
    missing = [name for name in ("name", "labellers") if not hasattr(cls, name)]
    missing += sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"register task {cls.__name__}: expected it to have {', '.join(missing)}")
    require_settings(cls, f"task {cls.name}")
    _registry.register(cls.name, cls)
    return cls


def kind(name: str) -> type[Task]:
    """The class of a task. Raises InputError, with the nearest name, for an unknown one."""
    if name == CUSTOM:
        return cast(type[Task], _registry.builtin(CUSTOM))
    if name in names():  # first, so that solving a task does not import the problems
        return cast(type[Task], _registry.get(name))
    if name in _problems.names():
        return cast(type[Task], _problems.get(name))
    raise unknown("task", name, [*names(), *_problems.names()])


def get(name: str, /, **settings: Any) -> Task:
    """A task with these settings, the fields of its dataclass; the others have their defaults."""
    if name == CUSTOM and not settings:  # it has no defaults: its settings come from examples
        raise unknown("task", name, names())
    return from_mapping(kind(name), settings, f"task {name}")


def with_points(task: Task, points: str) -> Task:
    """The task with another setting `points`. Raises InputError, with the nearest, if unknown."""
    return replace(task, points=cast(Any, points))
