"""Plug-ins: tasks, models and other parts from installed packages and from files.

An installed package names a module in its entry points, under the group `ptrnet.plugins`. Users
name a file by `ptrnet --plugins FILE` or in the environment variable PTRNET_PLUGINS, which child
processes inherit. In the variable, the system's path separator separates several files.

ptrnet imports each plug-in once. The plug-in then registers its names, for example by
`ptrnet.models.register`. If users name files, ptrnet imports all plug-ins before it looks up the
first name. Otherwise, ptrnet imports the plug-ins of installed packages only when names are listed,
or when a name is not one of ptrnet's own.

A `Registry` has all names of one kind, such as tasks: the names of ptrnet's own modules, and the
names that plug-ins registered.
"""

import importlib
import importlib.util
import os
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from threading import RLock
from typing import Any

from ptrnet.errors import InputError, unknown

GROUP, VARIABLE = "ptrnet.plugins", "PTRNET_PLUGINS"
_loaded: set[str] = set()
_loading = RLock()  # other threads wait until all names are there


def add(path: str) -> None:
    """Add a file to the plug-ins of this process and of its child processes."""
    absolute = str(Path(path).absolute())
    if absolute not in files():
        os.environ[VARIABLE] = os.pathsep.join([*files(), absolute])


def load() -> None:
    """Import the plug-ins that have not been imported yet.

    Raises:
        InputError: a file is missing, or a plug-in fails. The message names the plug-in.
    """
    with _loading:
        if GROUP not in _loaded:
            with _marked_as_loaded(GROUP):
                for entry in entry_points(group=GROUP):
                    try:
                        entry.load()
                    except Exception as error:  # a plug-in may raise any exception
                        raise _broken(f"{entry.name} ({entry.value})", error) from error
        for path in files():
            if path not in _loaded:
                with _marked_as_loaded(path):
                    _import_file(Path(path))


@contextmanager
def _marked_as_loaded(name: str) -> Iterator[None]:
    """Mark a plug-in as loaded before the import. If the import fails, remove the mark.

    While ptrnet imports a plug-in, the plug-in may look up names, which calls `load` again. The
    mark prevents a second import.
    """
    _loaded.add(name)
    try:
        yield
    except BaseException:
        _loaded.discard(name)
        raise


def files() -> list[str]:
    """Return the paths of the plug-in files that the user named."""
    return [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]


def _import_file(path: Path) -> None:
    """Import a file as a module of this package, so that other processes can unpickle objects."""
    _search(path.parent)
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"{path}: expected a Python file of plug-ins")
    try:
        module = importlib.import_module(f"{__name__}.{path.stem}")
    except Exception as error:  # a plug-in may raise any exception
        raise _broken(str(path), error) from error
    if Path(str(module.__file__)).resolve() != path.resolve():
        raise InputError(f"{path}: {module.__file__} is a plug-in of the same name; rename one")


def _search(folder: Path) -> None:
    """Make files in a folder importable as modules of this package."""
    if str(folder) not in __path__:
        __path__.append(str(folder))


def _broken(name: str, error: Exception) -> InputError:
    return InputError(f"plug-in {name}: {type(error).__name__}: {error}")


# A process that unpickles an object of a plug-in imports the plug-in's module without `load`. So
# add the folders of plug-ins to this package's search path now, not only in `load`.
for _path in files():
    _search(Path(_path).parent)


class Registry:
    """Objects of one kind, by name. A hyphen in a name is an underscore in the module's name.

    Args:
        kind: what messages call an object of the registry, such as "task".
        packages: the package with one module for each name, or several.
        unlisted: modules and packages in the packages that do not belong to the registry. Packages
            with the name `parts` never do.
        member: the name of the object in each module. If empty, the module is the object.
        check: a function that takes a name and the object that a plug-in registered. It raises
            InputError if the object cannot be used.
    """

    def __init__(
        self,
        kind: str,
        packages: str | tuple[str, ...],
        unlisted: tuple[str, ...] = (),
        member: str = "",
        check: Callable[[str, Any], None] = lambda name, value: None,
    ) -> None:
        self._kind, self._unlisted = kind, unlisted
        self._packages = (packages,) if isinstance(packages, str) else packages
        self._member, self._check = member, check
        self._registered: dict[str, Any] = {}

    def names(self) -> list[str]:
        """Return all names. Raises InputError if a plug-in fails."""
        load()
        return sorted([*self.builtin_names(), *self._registered])

    def __contains__(self, name: str) -> bool:
        """Whether `get` knows the name. Raises InputError if a plug-in fails."""
        if files() or name not in self.builtin_names():
            load()
        return name in self._registered or name in self.builtin_names()

    def get(self, name: str) -> Any:
        """Return the object of a name.

        Raises:
            InputError: the name is unknown (the message suggests the nearest name), or the object
                of a plug-in cannot be imported or used.
        """
        if name not in self:
            raise unknown(self._kind, name, self.names())
        if name not in self._registered:
            return self.builtin(name)
        value = self._registered[name]
        if not isinstance(value, str):
            return value
        module, _, attribute = value.partition(":")
        try:
            found: Any = importlib.import_module(module)
            found = getattr(found, attribute) if attribute else found
        except Exception as error:  # a plug-in may raise any exception
            raise _broken(value, error) from error
        self._check(name, found)
        return found

    def builtin(self, name: str) -> Any:
        """Return the object in a package's module `name`, even if the module is unlisted."""
        package = self._places().get(name, self._packages[0])
        module = importlib.import_module(f"{package}.{name.replace('-', '_')}")
        return getattr(module, self._member) if self._member else module

    def register(self, name: str, value: Any) -> None:
        """Register an object, or the text "module" or "module:attribute" that says where it is.

        An object that is given as a text is imported when `get` is called. If a class is defined
        again, for example in a notebook, the new class replaces the old.

        Raises:
            InputError: the object cannot be used, or another object has the name.
        """
        if not isinstance(value, str):
            self._check(name, value)
        former = self._registered.get(name, value)
        is_same = former == value or (isinstance(value, type) and _place(former) == _place(value))
        if name in (*self.builtin_names(), *self._unlisted) or not is_same:
            raise InputError(f"{self._kind} {name!r} is there already; choose another name")
        self._registered[name] = value

    def is_plugin(self, name: str) -> bool:
        """Whether a plug-in registered the name."""
        return name in self._registered

    def builtin_names(self, package: str = "") -> list[str]:
        """Return the names of the packages' own modules, or of one package's."""
        return [name for name, place in self._places().items() if package in ("", place)]

    @cache  # noqa: B019  a registry lives as long as its process
    def _places(self) -> dict[str, str]:
        """Return the package of each module's name."""
        places = {}
        for package in self._packages:
            spec = importlib.util.find_spec(package)  # does not import the package itself
            for module in pkgutil.iter_modules(spec.submodule_search_locations if spec else None):
                if module.name not in ("parts", *self._unlisted):
                    places[module.name.replace("_", "-")] = package
        return places


def _place(value: Any) -> tuple[Any, Any]:
    """Return the module and the qualified name of a class."""
    return getattr(value, "__module__", None), getattr(value, "__qualname__", None)
