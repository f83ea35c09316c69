"""The reference tasks. One file a task, found by its name; no list is kept elsewhere."""

import importlib
import pkgutil
from typing import Any, get_type_hints

from ptrnet.errors import unknown
from ptrnet.settings import check_type
from ptrnet.tasks.base import Task

CUSTOM = "custom"  # of a user's own examples: a model may serve it, no verb names it
_UNLISTED = {"base", "labelling", CUSTOM}
_FORMER_NAMES = {"own": CUSTOM}  # that models' folders and recipes may still have


def names() -> list[str]:
    """The reference tasks."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _UNLISTED)


def current_name(name: str) -> str:
    """The present name of a task, from its present or its former one."""
    return _FORMER_NAMES.get(name, name)


def kind(name: str) -> type[Task]:
    """The class of a task. Raises InputError, with the nearest name, for an unknown one."""
    name = current_name(name)
    if name not in (*names(), CUSTOM):
        raise unknown("task", name, names())
    cls: type[Task] = importlib.import_module(f"{__name__}.{name}").TASK
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
