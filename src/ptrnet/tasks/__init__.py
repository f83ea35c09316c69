"""The tasks. One file a task, found by its name; plug-ins register others."""

from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

from ptrnet.errors import InputError, unknown
from ptrnet.plugins.registry import Registry
from ptrnet.settings import check_type
from ptrnet.tasks.base import Task

CUSTOM = "custom"  # of a user's own examples: a model may serve it, no verb names it
_FORMER_NAMES = {"own": CUSTOM}  # that models' folders and recipes may still have
_NO_TASKS = ("base", "labelling", "schema", CUSTOM)
_registry = Registry("task", __name__, _NO_TASKS, "TASK")


def names() -> list[str]:
    """The tasks that draw instances: the reference tasks, and those of plug-ins."""
    return _registry.names()


def register(cls: type[Task]) -> type[Task]:
    """Adds a task, by its `name`; also as a decorator. It is then as any other, with its settings.

    Raises:
        InputError: no class derived from `Task`, one that lacks what a task must define, or one
            whose name is taken.
    """
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        raise InputError(f"register a task: expected a class derived from Task, got {cls!r}")
    missing = [name for name in ("name", "labellers") if not hasattr(cls, name)]
    missing += sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"register task {cls.__name__}: expected it to have {', '.join(missing)}")
    for f in fields(cls):
        if "help" not in f.metadata:
            raise InputError(
                f"register task {cls.name}: field {f.name}: expected one that "
                "ptrnet.tasks.base.setting(default, help) makes"
            )
    _registry.register(cls.name, cls)
    return cls


def current_name(name: str) -> str:
    """The present name of a task, from its present or its former one."""
    return _FORMER_NAMES.get(name, name)


def kind(name: str) -> type[Task]:
    """The class of a task. Raises InputError, with the nearest name, for an unknown one."""
    name = current_name(name)
    cls: type[Task] = _registry.builtin(CUSTOM) if name == CUSTOM else _registry.get(name)
    return cls


def get(name: str, /, **settings: Any) -> Task:
    """A task with these settings, the fields of its dataclass; the others have their defaults."""
    name = current_name(name)
    if name == CUSTOM and not settings:  # it has no defaults: its settings come from examples
        raise unknown("task", name, names())
    cls = kind(name)
    hints = get_type_hints(cls)
    for key, value in settings.items():
        if key not in cls.settings():
            raise unknown(f"setting of task {name}", key, cls.settings())
        check_type(f"{key} of task {name}", value, hints[key])
    return cls(**settings)


def with_points(task: Task, points: str) -> Task:
    """The task with another setting `points`. Raises InputError, with the nearest, if unknown."""
    kinds = get_args(get_type_hints(type(task))["points"])
    if points not in kinds:
        raise unknown("points", points, kinds)
    changes: dict[str, Any] = {"points": points}
    return replace(task, **changes)
