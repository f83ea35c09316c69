"""The reference tasks. One file a task, found by its name; no list is kept elsewhere."""

import importlib
import pkgutil
from typing import Any

from ptrnet.errors import unknown
from ptrnet.tasks.base import Task

_NOT_TASKS = {"base"}


def names() -> list[str]:
    """The known tasks."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_TASKS)


def kind(name: str) -> type[Task]:
    """The class of a task. Raises InputError, with the nearest name, for an unknown one."""
    if name not in names():
        raise unknown("task", name, names())
    found: type[Task] = importlib.import_module(f"{__name__}.{name}").TASK
    return found


def get(name: str, **settings: Any) -> Task:
    """A task with its settings (a dataclass' fields; the defaults where none are given)."""
    cls = kind(name)
    known = cls.settings()
    for key in settings:
        if key not in known:
            raise unknown(f"setting of task {name}", key, known)
    return cls(**settings)
