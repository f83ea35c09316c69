"""Registries of tasks, models and the like: the modules of a folder, and what plug-ins add."""

import importlib
import pkgutil
from functools import cache
from typing import Any

from ptrnet import plugins
from ptrnet.errors import InputError, unknown


class Registry:
    """Objects of one kind by their names. A hyphen in a name is an underscore in its module's.

    Args:
        kind: the kind's name in messages.
        package: the package with one module for each name.
        unlisted: modules of the package that do not belong to the registry.
        member: the member of the module that is registered; if empty, the module itself.
    """

    def __init__(
        self, kind: str, package: str, unlisted: tuple[str, ...] = (), member: str = ""
    ) -> None:
        self._kind, self._package, self._unlisted = kind, package, unlisted
        self._member = member
        self._registered: dict[str, Any] = {}

    def names(self) -> list[str]:
        """All names. Raises InputError if a plug-in fails."""
        plugins.load()
        return sorted([*self._builtin_names(), *self._registered])

    def get(self, name: str) -> Any:
        """The object of that name. Raises InputError with the nearest name if it is unknown."""
        if name not in self.names():
            raise unknown(self._kind, name, self.names())
        return self._registered[name] if name in self._registered else self.builtin(name)

    def builtin(self, name: str) -> Any:
        """The object in the package's module of that name, even if the module is unlisted."""
        module = importlib.import_module(f"{self._package}.{name.replace('-', '_')}")
        return getattr(module, self._member) if self._member else module

    def register(self, name: str, value: Any) -> None:
        """Add a name. Raises InputError if another object has it.

        A class that is defined again, as by a notebook's cell, replaces its former version.
        """
        former = self._registered.get(name, value)
        is_same = former is value or (isinstance(value, type) and _place(former) == _place(value))
        if name in self._builtin_names() or not is_same:
            raise InputError(f"{self._kind} {name!r} is there already; choose another name")
        self._registered[name] = value

    def is_plugin(self, name: str) -> bool:
        """Whether a plug-in registered the name."""
        return name in self._registered

    @cache  # noqa: B019  a registry lives as long as its process
    def _builtin_names(self) -> list[str]:
        path = importlib.import_module(self._package).__path__
        modules = (m.name for m in pkgutil.iter_modules(path) if not m.ispkg)
        return [name.replace("_", "-") for name in modules if name not in self._unlisted]


def _place(value: Any) -> tuple[Any, Any]:
    """The module and the name of a class."""
    return getattr(value, "__module__", None), getattr(value, "__qualname__", None)
