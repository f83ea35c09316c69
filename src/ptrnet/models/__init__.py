"""The networks. One file a variant, found by its name; no list is kept elsewhere."""

import importlib
import pkgutil
import typing
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from ptrnet.errors import InputError, unknown
from ptrnet.models.settings import Settings, resolve_aliases
from ptrnet.settings import check_type

if TYPE_CHECKING:  # names and settings are known without torch
    from ptrnet.models.base import PointerModel

_NOT_MODELS = {"base", "parts", "settings"}


def names() -> list[str]:
    """The known models, as they are spelled on the command line."""
    files = (m.name for m in pkgutil.iter_modules(__path__))
    return sorted(name.replace("_", "-") for name in files if name not in _NOT_MODELS)


def kind(name: str) -> "type[PointerModel]":
    """The class of a model. Raises InputError, with the nearest name, for an unknown one."""
    if name not in names():
        raise unknown("model", name, names())
    found: type[PointerModel] = importlib.import_module(
        f"{__name__}.{name.replace('-', '_')}"
    ).MODEL
    return found


def setting_names(name: str) -> list[str]:
    """The settings that a model has."""
    return [f.name for f in fields(kind(name).Settings)]


def settings_of(name: str, /, **given: Any) -> Settings:
    """The settings of a model: those given, and the defaults.

    Raises:
        InputError: a setting that the model has not (the nearest is suggested) or needs, or a
            value of another type or out of bounds.
    """
    given = resolve_aliases(given)
    cls = kind(name).Settings
    hints = typing.get_type_hints(cls)
    for key in given:
        if key not in hints:
            raise unknown(f"setting of model {name}", key, hints)
    for f in fields(cls):
        where = f"setting {f.name} of model {name}"
        if f.name not in given:
            if f.default is MISSING:
                raise InputError(f"{where} is missing")
            continue
        value, bounds = given[f.name], f.metadata["bounds"]
        check_type(where, value, hints[f.name])
        if bounds is not None and not bounds[0] <= value <= bounds[1]:
            raise InputError(f"{where}: expected {bounds[0]} to {bounds[1]}, got {value}")
    return cls(**given)


def build(name: str, features: int, num_specials: int, /, **settings: Any) -> "PointerModel":
    """A fresh model for elements of d `features` and so many special slots; see `settings_of`."""
    return kind(name)(features, num_specials, settings_of(name, **settings))
