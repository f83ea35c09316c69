"""The networks. One file a variant, found by its name; plug-ins register others."""

import typing
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from ptrnet.errors import InputError, unknown
from ptrnet.models.settings import ModelSettings, resolve_aliases
from ptrnet.plugins.registry import Registry
from ptrnet.settings import check_type

if TYPE_CHECKING:  # names and settings are known without torch
    from ptrnet.models.base import PointerModel

_registry = Registry("model", __name__, ("base", "settings"), "MODEL")


def names() -> list[str]:
    """The known models, as they are spelled on the command line."""
    return _registry.names()


def register(name: str, cls: "type[PointerModel]") -> None:
    """Adds a model under a name, such as "my-net".

    Raises:
        InputError: no class derived from `PointerModel`, or a name that is taken.
    """
    from ptrnet.models.base import PointerModel

    if not (isinstance(cls, type) and issubclass(cls, PointerModel)):
        raise InputError(
            f"register a model: expected a class derived from PointerModel, got {cls!r}"
        )
    for f in fields(cls.Settings):
        if "help" not in f.metadata:
            raise InputError(
                f"register model {name}: setting {f.name}: expected one that "
                "ptrnet.models.settings.setting(help, default, bounds) makes"
            )
    _registry.register(name, cls)


def kind(name: str) -> "type[PointerModel]":
    """The class of a model. Raises InputError, with the nearest name, for an unknown one."""
    cls: type[PointerModel] = _registry.get(name)
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
