"""The networks. One file a variant, found by its name; no list is kept elsewhere."""

import importlib
import pkgutil
import typing
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from ptrnet.errors import InputError, unknown
from ptrnet.models.settings import ModelSettings, resolve_aliases
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
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    cls: type[PointerModel] = module.MODEL
    return cls


def setting_names(name: str) -> list[str]:
    """The settings that a model has."""
    return [f.name for f in fields(kind(name).Settings)]


def settings_of(name: str, /, **values: Any) -> ModelSettings:
    """The settings of a model: these values, and defaults for the others.

    Raises:
        InputError: a setting that the model has not (the nearest is suggested) or needs, or a
            value of another type or out of bounds.
    """
    values = resolve_aliases(values)
    cls = kind(name).Settings
    types = typing.get_type_hints(cls)
    for key in values:
        if key not in types:
            raise unknown(f"setting of model {name}", key, types)
    for f in fields(cls):
        label = f"setting {f.name} of model {name}"
        if f.name not in values:
            if f.default is MISSING:
                raise InputError(f"{label} is missing")
            continue
        value, bounds = values[f.name], f.metadata["bounds"]
        check_type(label, value, types[f.name])
        if bounds is not None and not bounds[0] <= value <= bounds[1]:
            raise InputError(f"{label}: expected {bounds[0]} to {bounds[1]}, got {value}")
    return cls(**values)


def build(name: str, features: int, num_specials: int, /, **settings: Any) -> "PointerModel":
    """A fresh model for elements of d `features`, and S special slots; see `settings_of`."""
    return kind(name)(features, num_specials, settings_of(name, **settings))
