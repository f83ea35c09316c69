"""Errors that a user can mend: one line each, of what was expected, what came, and where."""

import difflib
from collections.abc import Iterable
from numbers import Integral


class PtrnetError(Exception):
    """Every error that ptrnet raises on purpose. The command line prints it and exits with 2, or
    with 1 where a training has diverged.
    """

    exit_code = 2


class InputError(PtrnetError, ValueError):
    """An instance, an answer, a file or an option that cannot be used."""


class ShapeError(InputError):
    """Arrays whose shapes do not fit."""


class ModelError(InputError):
    """A model that does not exist, or whose files are broken."""


class NotFiniteError(ModelError):
    """A model whose log-probabilities are no finite numbers, so that they say nothing."""


class OutputError(InputError):
    """A file that could not be written completely, as on a full disk."""


class KilledError(PtrnetError):
    """One of several processes was killed, as the system does where memory is short."""


class DivergedError(PtrnetError, ArithmeticError):
    """A training whose loss is no finite number any more. The command line exits with 1."""

    exit_code = 1


class MissingExtraError(PtrnetError, ImportError):
    """A feature whose optional packages are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs the extra "{extra}": pip install "ptrnet[{extra}]"')
        self.feature, self.extra = feature, extra

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """How the error is pickled for another process: by default with its message alone."""
        return type(self), (self.feature, self.extra)


class OutOfDistributionWarning(UserWarning):
    """An instance whose size or features are unlike all instances in the model's training."""


class AmbiguousInputWarning(UserWarning):
    """Input that can be read, but that the user may have meant in another way."""


# Former names, which scripts may still import.
OutsideTraining = OutOfDistributionWarning
DoubtfulInput = AmbiguousInputWarning


_SYNONYMS = {"gpu": "cuda"}  # of which another name would be the nearest, "cpu"


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not among the known: it suggests the nearest, and lists all."""
    known = sorted(known)
    nearest = [_SYNONYMS[name]] if _SYNONYMS.get(name) in known else []
    nearest = nearest or difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return InputError(f"unknown {kind} {short(name)}{hint} (known: {', '.join(known)})")


def short(value: object, length: int = 40) -> str:
    """A value as messages show it: text quoted, and cut where it is longer than `length`."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # Python refuses to write numbers of more than 4300 digits
        text = f"{type(value).__name__} of very many digits"
    if len(text) > length:
        text = text[: length - 3] + "..."
    return repr(text) if isinstance(value, str) else text


def file_of(source: str) -> str:
    """The file of a source `FILE:LINE` or `FILE: row ROW`.

    Warnings that name neither are shown once a file.
    """
    file, _, place = source.rpartition(":")
    return file if place.removeprefix(" row ").isdecimal() else source


def check_int(name: str, value: object, minimum: int) -> int:
    """The value as an `int`: one, or a whole number of another type, such as NumPy's.

    Raises:
        InputError: anything else, `True` too, or less than `minimum`.
    """
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= minimum:
        return int(value)
    raise InputError(f"{name}: expected a whole number of {minimum} or more, got {short(value)}")
