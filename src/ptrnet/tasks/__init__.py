"""The reference tasks. One file a task, found by its name; no list is kept elsewhere."""

import importlib
import pkgutil
from typing import Any, get_type_hints

from ptrnet.errors import unknown
from ptrnet.settings import check
from ptrnet.tasks.base import Task

OWN = "own"  # of a user's own examples: models may serve it, but nothing is drawn or labelled
_NOT_NAMED = {"base", OWN}


def names() -> list[str]:
    """The reference tasks."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_NAMED)


def kind(name: str) -> type[Task]:
    """The class of a task. Raises InputError, with the nearest name, for an unknown one."""
    if name not in (*names(), OWN):
        raise unknown("task", name, names())
    found: type[Task] = importlib.import_module(f"{__name__}.{name}").TASK
    return found


def get(name: str, /, **settings: Any) -> Task:
    """A task with its settings (a dataclass' fields; the defaults where none are given)."""
    if name == OWN and not settings:  # without what examples tell it is none
        raise unknown("task", name, names())
    cls = kind(name)
    hints = get_type_hints(cls)
    for key, value in settings.items():
        if key not in cls.settings():
            raise unknown(f"setting of task {name}", key, cls.settings())
        check(f"{key} of task {name}", value, hints[key])
    return cls(**settings)
