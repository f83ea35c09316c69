"""The reference tasks. One file a task, found by its name; no list is kept elsewhere."""

import importlib
import pkgutil
from typing import Any, get_type_hints

from ptrnet.errors import unknown
from ptrnet.settings import check_type
from ptrnet.tasks.base import Task

CUSTOM = "custom"  # of a user's own examples: models may serve it, but nothing is drawn or labelled
_NOT_NAMED = {"base", CUSTOM}
_FORMER = {"own": CUSTOM}  # names that models' folders and recipes may still have


def names() -> list[str]:
    """The reference tasks."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_NAMED)


def current_name(name: str) -> str:
    """The present name of a task that is called by its present or its former one."""
    return _FORMER.get(name, name)


def kind(name: str) -> type[Task]:
    """The class of a task. Raises InputError, with the nearest name, for an unknown one."""
    name = current_name(name)
    if name not in (*names(), CUSTOM):
        raise unknown("task", name, names())
    found: type[Task] = importlib.import_module(f"{__name__}.{name}").TASK
    return found


def get(name: str, /, **settings: Any) -> Task:
    """A task with its settings (a dataclass' fields; the defaults where none are given)."""
    name = current_name(name)
    if name == CUSTOM and not settings:  # without what examples tell it is none
        raise unknown("task", name, names())
    cls = kind(name)
    hints = get_type_hints(cls)
    for key, value in settings.items():
        if key not in cls.settings():
            raise unknown(f"setting of task {name}", key, cls.settings())
        check_type(f"{key} of task {name}", value, hints[key])
    return cls(**settings)
