"""The networks. One file a variant, found by its name; no list is kept elsewhere."""

import importlib
import inspect
import pkgutil
from typing import Any

from ptrnet.errors import InputError, unknown
from ptrnet.models.base import PointerModel
from ptrnet.settings import check

_NOT_MODELS = {"base", "recurrent"}
LARGEST_SETTING = 65_536  # units: a layer of more would not fit any memory


def names() -> list[str]:
    """The known models, as they are spelled on the command line."""
    files = (m.name for m in pkgutil.iter_modules(__path__))
    return sorted(name.replace("_", "-") for name in files if name not in _NOT_MODELS)


def kind(name: str) -> type[PointerModel]:
    """The class of a model. Raises InputError, with the nearest name, for an unknown one."""
    if name not in names():
        raise unknown("model", name, names())
    found: type[PointerModel] = importlib.import_module(
        f"{__name__}.{name.replace('-', '_')}"
    ).MODEL
    return found


def build(name: str, features: int, specials: int, /, **settings: Any) -> PointerModel:
    """A fresh model. `settings` are keyword arguments of its class, checked by name."""
    cls = kind(name)
    known = {
        key: parameter.annotation
        for key, parameter in inspect.signature(cls).parameters.items()
        if key not in ("features", "specials")
    }
    for key, value in settings.items():
        if key not in known:
            raise unknown(f"setting of model {name}", key, known)
        where = f"setting {key} of model {name}"
        check(where, value, known[key])
        if isinstance(value, int) and not 1 <= value <= LARGEST_SETTING:
            raise InputError(f"{where}: expected 1 to {LARGEST_SETTING}, got {value}")
    return cls(features, specials, **settings)
