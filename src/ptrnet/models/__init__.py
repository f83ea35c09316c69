"""The networks, one file for each network. Plug-ins register further networks.

Examples:
    >>> from ptrnet import models
    >>> "ptr-net" in models.names()
    True
    >>> model = models.build("ptr-net", 2, 1, hidden_size=64)
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptrnet.errors import InputError, unknown
from ptrnet.models.settings import ModelSettings
from ptrnet.plugins import Registry
from ptrnet.settings import from_mapping, options_of, require_settings

if TYPE_CHECKING:  # names and settings must not import torch
    from ptrnet.models.base import PointerModel
    from ptrnet.tasks.base import Task

# Models for the tasks or answers of one kind, so `names` leaves them out.
STATES = "state-ptr-net"  # for `ptrnet.problems`
BOXES = "box-ptr-net"  # for `reading-order`
LOGIT = "conditional-logit"  # for choices, and not trained in steps
CHOOSER = "chooser"  # for choices and grades, and not trained in steps
UNLISTED = (STATES, BOXES, LOGIT, CHOOSER)
AT_ONCE = (LOGIT, CHOOSER)  # not trained in steps


def _check(name: str, cls: Any) -> None:
    """Raise InputError if a plug-in's class is not a model, or its settings cannot be options."""
    from ptrnet.models.base import PointerModel

    if not (isinstance(cls, type) and issubclass(cls, PointerModel)):
        raise InputError(
            f"register a model: expected a class derived from PointerModel, got {cls!r}"
        )
    require_settings(cls.Settings, f"model {name}")


_NO_MODELS = ("base", "ensemble", "settings", *(name.replace("-", "_") for name in UNLISTED))
_registry = Registry("model", __name__, _NO_MODELS, "MODEL", _check)


def names() -> list[str]:
    """The names of the models, as the command line spells them."""
    return _registry.names()


def register(name: str, cls: "type[PointerModel] | str") -> None:
    """Register a model under a name.

    Args:
        name: for the command line and recipes, such as "my-net".
        cls: a class derived from `PointerModel`. Or a text that says where the class is, such as
            "mine.nets:MyNet". Then the module is imported when the model is used. `ptrnet train`
            has options for the settings of such a model only if their class has been imported.

    Raises:
        InputError: `cls` is not derived from `PointerModel`, or the name is taken.

    Examples:
        >>> models.register("my-net", MyNet)
    """
    _registry.register(name, cls)


def kind(name: str) -> "type[PointerModel]":
    """The class of a model. Raises InputError with the nearest name if there is no such model."""
    is_unlisted = name in UNLISTED
    if not is_unlisted and name not in _registry:
        raise unknown("model", name, [*names(), *AT_ONCE])
    cls: type[PointerModel] = _registry.builtin(name) if is_unlisted else _registry.get(name)
    return cls


def setting_names(name: str) -> list[str]:
    """The names of a model's settings."""
    return list(options_of(kind(name).Settings))


def settings_of(name: str, /, **values: Any) -> ModelSettings:
    """The settings of a model: the given values, and the defaults of all other settings.

    Raises:
        InputError: the model has no such setting (the message suggests the nearest name), a setting
            without a default is missing, or a value is out of range.
    """
    return from_mapping(kind(name).Settings, values, f"model {name}")


def build(name: str, features: int, num_specials: int, /, **settings: Any) -> "PointerModel":
    """Build a model with random weights.

    Args:
        name: the model's name.
        features: number of features of an element, d.
        num_specials: number of special slots, S (see `PointerModel`).
        settings: see `settings_of`.
    """
    cls, values = kind(name), settings_of(name, **settings)
    return _of_networks(values, lambda: cls(features, num_specials, values))


def for_task(name: str, task: "Task", settings: ModelSettings) -> "PointerModel":
    """Build a model with random weights for the instances of a task."""
    cls = kind(name)
    return _of_networks(settings, lambda: cls.for_task(task, settings))


def _of_networks(settings: ModelSettings, network: Callable[[], "PointerModel"]) -> "PointerModel":
    """Return one network, or an `Ensemble` if the setting `ensemble` exceeds 1."""
    if settings.ensemble == 1:
        return network()
    from ptrnet.models.ensemble import Ensemble

    return Ensemble([network() for _ in range(settings.ensemble)])
