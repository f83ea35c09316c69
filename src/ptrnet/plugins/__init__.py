"""Tasks, models, labellers and file formats of others: from installed packages and from files.

An installed package names a module in its entry points, under the group `ptrnet.plugins`; a file is
named by `ptrnet --plugins FILE`, or by the environment variable PTRNET_PLUGINS (several with the
system's path separator), which processes inherit. Either is imported once, when ptrnet first looks
for names, and calls `register` of what it extends.
"""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from threading import RLock

from ptrnet.errors import InputError

GROUP, VARIABLE = "ptrnet.plugins", "PTRNET_PLUGINS"
_loaded: set[str] = set()
_loading = RLock()  # other threads wait until there are all names


def add(path: str) -> None:
    """Puts a file where this process, and those that it starts, look for plug-ins."""
    absolute = str(Path(path).absolute())
    if absolute not in _files():
        os.environ[VARIABLE] = os.pathsep.join([*_files(), absolute])


def load() -> None:
    """Imports what has not been imported yet.

    Raises:
        InputError: a file that is not there, or a plug-in that fails; it is named.
    """
    with _loading:
        if GROUP not in _loaded:
            with _marked_as_loaded(GROUP):
                for entry in entry_points(group=GROUP):
                    try:
                        entry.load()
                    except Exception as error:
                        raise _broken(f"{entry.name} ({entry.value})", error) from error
        for path in _files():
            if path not in _loaded:
                with _marked_as_loaded(path):
                    _import_file(Path(path))


@contextmanager
def _marked_as_loaded(name: str) -> Iterator[None]:
    """Plug-ins ask for names while they are loaded; what fails is complained of again."""
    _loaded.add(name)
    try:
        yield
    except BaseException:
        _loaded.discard(name)
        raise


def _files() -> list[str]:
    return [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]


def _import_file(path: Path) -> None:
    """Imports a file as a module of this package, where processes find classes they are sent."""
    _search(path.parent)
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"{path}: expected a Python file of plug-ins")
    try:
        module = importlib.import_module(f"{__name__}.{path.stem}")
    except Exception as error:
        raise _broken(str(path), error) from error
    if Path(str(module.__file__)).resolve() != path.resolve():
        raise InputError(f"{path}: {module.__file__} is a file of plug-ins of the same name")


def _search(folder: Path) -> None:
    """Lets this package's modules be in a folder, too."""
    if str(folder) not in __path__:
        __path__.append(str(folder))


def _broken(name: str, error: Exception) -> InputError:
    return InputError(f"plug-in {name}: {type(error).__name__}: {error}")


for _path in _files():  # a process that is sent an object of a plug-in's class imports that at once
    _search(Path(_path).parent)
