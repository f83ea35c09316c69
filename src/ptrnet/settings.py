"""Settings: fields of frozen dataclasses that `setting` declares.

A setting has a type, a default, a help text and bounds. It is declared once, and becomes an option
of the command line, a key of TOML recipes and a keyword argument in Python. Values are checked
when an object is made. `docs/dev/settings.md` compares this module with similar libraries.

    @dataclass(frozen=True)
    class Optimizer(Settings):
        kind: Literal["adamw", "sgd"] = setting("adamw", "how weights are updated")
        rate: float = setting(2e-3, "the learning rate", gt=0)

    Optimizer(rate=-1)      # InputError: rate: expected a number above 0, got -1
    options_of(Optimizer)   # {"kind": Option(...), "rate": Option(...)}
"""

import json
import math
import operator
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from ptrnet.errors import InputError, short, unknown

T = TypeVar("T", bound="Settings")
_HELP, _BOUNDS, _OWNER = "help", "bounds", "owner"  # keys of a field's metadata

# Owners of settings. Other owners are names of tasks.
OWN_EXAMPLES, ANY_TASK, COSTS = "your own examples", "tasks", "learning from costs"
NETWORKS = "the network"


class Bounds(NamedTuple):
    """The bounds of a number; None means unbounded."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def hold(self, value: float) -> bool:
        """Whether a number is within the bounds. If there is any bound, NaN is outside."""
        tests = zip((operator.ge, operator.gt, operator.le, operator.lt), self, strict=True)
        return all(end is None or test(value, end) for test, end in tests)

    def __str__(self) -> str:
        """The bounds in words that can follow "a number"."""
        if self.ge is not None and self.le is not None:
            return f" from {self.ge} to {self.le}"
        parts = (
            ("of {} or more", self.ge),
            ("above {}", self.gt),
            ("of {} or less", self.le),
            ("below {}", self.lt),
        )
        words = [text.format(end) for text, end in parts if end is not None]
        return " " + " and ".join(words) if words else ""


NO_BOUNDS = Bounds()


def setting(
    default: Any,
    help: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    kw_only: bool = True,
    owner: str = "",
) -> Any:
    """Declare a setting: a field of a dataclass that derives from `Settings`.

    The type of the field is bool, int, float, str, or `tuple[T, ...]` of one of these types. The
    type can also be a Literal of texts, or a class with a method `parse`. Each type may be
    optional, as in `int | None`.

    Args:
        default: the default; MISSING if the setting is required.
        help: one line of help, without the default and the choices.
        ge: a number must be greater than or equal to this.
        gt: a number must be greater than this.
        le: a number must be less than or equal to this.
        lt: a number must be less than this.
        kw_only: whether the setting is a keyword-only argument.
        owner: what the setting belongs to. The help of a command only shows the setting if the user
            names its owner. By default, the owner of its class (`Settings._owner`).

    Examples:
        >>> @dataclass(frozen=True)
        ... class Optimizer(Settings):
        ...     rate: float = setting(2e-3, "the learning rate", gt=0)
        >>> Optimizer(rate=-1)
        Traceback (most recent call last):
        ptrnet.errors.InputError: rate: expected a number above 0, got -1
    """
    metadata = {_HELP: help, _BOUNDS: Bounds(ge, gt, le, lt), _OWNER: owner}
    return field(default=default, kw_only=kw_only, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """Base class of dataclasses with settings. Values are checked when an object is made."""

    # What all settings of the class belong to; empty if they are for everything.
    _owner: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, option in options_of(type(self)).items():
            object.__setattr__(self, name, option.check(getattr(self, name)))


def numbers_of(key: str, text: str, number: type[int] | type[float] = float) -> list[Any]:
    """Return the numbers in a text such as 1,5,10.

    Raises:
        InputError: a part of the text is not a number; the message begins with `key`.
    """
    try:
        return [number(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{key}: expected numbers such as 1,5,10, got {short(text)}") from None


@dataclass(frozen=True)
class Option:
    """The description of a setting, for the command line, files and the help."""

    name: str
    type: Any  # T for a setting of the type `T | None`
    default: Any  # MISSING if the setting is required
    help: str
    bounds: Bounds = NO_BOUNDS
    may_be_none: bool = False
    owners: tuple[str, ...] = ()  # what alone has the setting; see `setting`

    @property
    def choices(self) -> tuple[str, ...]:
        """The possible values if the type is a Literal, otherwise an empty tuple."""
        return typing.get_args(self.type) if typing.get_origin(self.type) is Literal else ()

    def check(self, value: Any) -> Any:
        """Check and convert a value. Raises InputError if the value is invalid."""
        if value is None and self.may_be_none:
            return None
        return check(self.name, value, self.type, self.bounds)


def options_of(cls: type) -> dict[str, Option]:
    """Return the settings of a dataclass by name, in the order of its fields."""
    return _options_of(cls)


@cache  # separate from `options_of`, because mypy thinks that `cls` is not hashable
def _options_of(cls: type) -> dict[str, Option]:
    hints = typing.get_type_hints(cls)
    options = {}
    for f in fields(cls):
        if _HELP in f.metadata:
            kind, may_be_none = _without_none(hints[f.name])
            help, bounds = f.metadata[_HELP], f.metadata[_BOUNDS]
            owner = f.metadata[_OWNER] or getattr(cls, "_owner", "")
            owners = (owner,) if owner else ()
            options[f.name] = Option(f.name, kind, f.default, help, bounds, may_be_none, owners)
    return options


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return `(T, True)` for the type `T | None`, and `(hint, False)` for any other type."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        if len(kinds) == 1:
            return kinds[0], True
    return hint, False


def require_settings(cls: type, owner: str) -> None:
    """Raise InputError if a class of a plug-in has a field that was not made by `setting`."""
    for f in fields(cls):
        if _HELP not in f.metadata:
            raise InputError(
                f"register {owner}: field {f.name}: declare it with "
                "ptrnet.settings.setting(default, help)"
            )


def from_mapping(cls: type[T], values: Mapping[str, Any], owner: str) -> T:
    """Make an object with the given settings, and with defaults for all other settings.

    Args:
        values: settings by name.
        owner: what the settings belong to, for messages, such as "task hull".

    Raises:
        InputError: a name is unknown, a required setting is missing, or a value is invalid. For an
            unknown name, the message suggests the nearest name.
    """
    options = options_of(cls)
    for name in values:
        if name not in options:
            raise unknown(f"setting of {owner}", name, options)
    for name, option in options.items():
        if option.default is MISSING and name not in values:
            raise InputError(f"setting {name} of {owner} is missing")
    try:
        return cls(**values)
    except InputError as error:
        raise InputError(f"{owner}: {error}") from None


def to_mapping(settings: Settings) -> dict[str, Any]:
    """Return the settings by name, with values that TOML and JSON can store.

    `from_mapping` takes the result. Values of ptrnet's own classes become texts.
    """
    values = {name: getattr(settings, name) for name in options_of(type(settings))}
    plain = (bool, int, float, str, tuple, type(None))
    return {k: v if type(v) in plain else str(v) for k, v in values.items()}


def to_toml(table: Mapping[str, Any]) -> str:
    """Write a flat table as TOML."""
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):  # unlike JSON, TOML does not allow the character DEL in a text
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def check(name: str, value: Any, kind: Any, bounds: Bounds = NO_BOUNDS) -> Any:
    """Check a value and convert it to the type `kind`.

    NumPy's numbers become Python's, and lists become tuples. If `kind` has a method `parse`, this
    method converts values of other types.

    Raises:
        InputError: the value is invalid. For a Literal, the message suggests the nearest value.
    """
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        if not isinstance(value, str) or value not in choices:
            kind = "value of unknown" if name == "unknown" else name  # not "unknown unknown"
            raise unknown(kind, str(value), choices)
        return value
    if hasattr(kind, "parse") and not isinstance(value, kind):
        return kind.parse(value)
    expected = f"{_described(kind)}{bounds}"
    try:
        return _converted(value, kind, bounds)
    except OverflowError:
        expected = expected.replace("number", "finite number", 1)
    except (TypeError, ValueError):
        pass
    raise InputError(f"{name}: expected {expected}, got {short(value)}")


def _converted(value: Any, kind: Any, bounds: Bounds) -> Any:
    """Convert a value to `kind`.

    Raises:
        TypeError: the value has another type.
        OverflowError: the value is infinite, too large for a float, or NaN.
        ValueError: the value is out of bounds.
    """
    if typing.get_origin(kind) is tuple and isinstance(value, list | tuple):
        item = typing.get_args(kind)[0]
        return tuple(_converted(part, item, bounds) for part in value)
    if kind is int and isinstance(value, Integral) and not isinstance(value, bool):
        number: float = int(value)
    elif kind is float and isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if not math.isfinite(number):
            raise OverflowError
    elif typing.get_origin(kind) is None and kind not in (int, float) and isinstance(value, kind):
        return value
    else:
        raise TypeError
    if not bounds.hold(number):
        raise ValueError
    return number


def _described(kind: Any, ending: str = "") -> str:
    """Describe a type in words, with an article. With the ending "s", use the plural instead."""
    if typing.get_origin(kind) is tuple:
        words = f"list{ending} of {_described(typing.get_args(kind)[0], 's')}"
    elif kind is bool:
        return "true or false"
    else:
        known = {int: "whole number", float: "number", str: "text"}
        words = known.get(kind, kind.__name__) + ending
    return words if ending else f"a {words}"
