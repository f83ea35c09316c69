"""What is found by its name: the modules of a folder, and what plug-ins register beside them."""

import importlib
import pkgutil
from functools import cache
from typing import Any

from ptrnet import plugins
from ptrnet.errors import InputError, unknown


class Registry:
    """Names of one kind of thing; a hyphen in a name is an underscore in its module's.

    Args:
        kind: what messages call it.
        package: whose modules they are.
        unlisted: modules that are none.
        member: of the module, that is registered; the module itself where empty.
    """

    def __init__(
        self, kind: str, package: str, unlisted: tuple[str, ...] = (), member: str = ""
    ) -> None:
        self._kind, self._package, self._unlisted = kind, package, unlisted
        self._member = member
        self._registered: dict[str, Any] = {}

    def names(self) -> list[str]:
        """Every name. Raises InputError for a plug-in that fails."""
        plugins.load()
        return sorted([*self._builtin_names(), *self._registered])

    def get(self, name: str) -> Any:
        """What has the name. Raises InputError, with the nearest, for an unknown one."""
        if name not in self.names():
            raise unknown(self._kind, name, self.names())
        return self._registered[name] if name in self._registered else self.builtin(name)

    def builtin(self, name: str) -> Any:
        """What the package's module of that name holds, also of one that is not listed."""
        module = importlib.import_module(f"{self._package}.{name.replace('-', '_')}")
        return getattr(module, self._member) if self._member else module

    def register(self, name: str, value: Any) -> None:
        """Adds a name. Raises InputError where it is taken by something else.

        A class that is defined again, as by a notebook's cell, takes the place of the former one.
        """
        former = self._registered.get(name, value)
        is_same = former is value or (isinstance(value, type) and _place(former) == _place(value))
        if name in self._builtin_names() or not is_same:
            raise InputError(f"{self._kind} {name!r} is there already; choose another name")
        self._registered[name] = value

    def is_plugin(self, name: str) -> bool:
        """Whether a plug-in brought it."""
        return name in self._registered

    @cache  # noqa: B019  a registry lives as long as its process
    def _builtin_names(self) -> list[str]:
        path = importlib.import_module(self._package).__path__
        modules = (m.name for m in pkgutil.iter_modules(path) if not m.ispkg)
        return [name.replace("_", "-") for name in modules if name not in self._unlisted]


def _place(value: Any) -> tuple[Any, Any]:
    """Where a class is defined."""
    return getattr(value, "__module__", None), getattr(value, "__qualname__", None)
