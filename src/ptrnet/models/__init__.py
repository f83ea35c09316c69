"""The networks. One file a variant, found by its name; plug-ins register others."""

from typing import TYPE_CHECKING, Any

from ptrnet.errors import InputError
from ptrnet.models.settings import ModelSettings
from ptrnet.plugins import Registry
from ptrnet.settings import from_mapping, options_of, require_settings

if TYPE_CHECKING:  # names and settings are known without torch
    from ptrnet.models.base import PointerModel

STATES = "state-ptr-net"  # of problems alone, so no other task names it
_registry = Registry("model", __name__, ("base", "ensemble", "settings", "state_ptr_net"), "MODEL")


def names() -> list[str]:
    """The known models, as they are spelled on the command line."""
    return _registry.names()


def register(name: str, cls: "type[PointerModel]") -> None:
    """Register a model under a name, such as "my-net".

    Raises:
        InputError: `cls` is not derived from `PointerModel`, or the name is taken.
    """
    from ptrnet.models.base import PointerModel

    if not (isinstance(cls, type) and issubclass(cls, PointerModel)):
        raise InputError(
            f"register a model: expected a class derived from PointerModel, got {cls!r}"
        )
    require_settings(cls.Settings, f"model {name}")
    _registry.register(name, cls)


def kind(name: str) -> "type[PointerModel]":
    """The class of a model. Raises InputError, with the nearest name, for an unknown one."""
    cls: type[PointerModel] = _registry.builtin(name) if name == STATES else _registry.get(name)
    return cls


def setting_names(name: str) -> list[str]:
    """The settings that a model has."""
    return list(options_of(kind(name).Settings))


def settings_of(name: str, /, **values: Any) -> ModelSettings:
    """The settings of a model: these values, and defaults for the others.

    Raises:
        InputError: the model does not have such a setting (the nearest is suggested), one is
            missing, or a value does not fit.
    """
    return from_mapping(kind(name).Settings, values, f"model {name}")


def build(name: str, features: int, num_specials: int, /, **settings: Any) -> "PointerModel":
    """A fresh model for elements of d `features`, and S special slots; see `settings_of`."""
    return kind(name).fresh(features, num_specials, settings_of(name, **settings))
