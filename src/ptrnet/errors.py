"""Exceptions and warnings for users.

A message is one line that says where the error is, what was expected and what was given.
"""

import difflib
import re
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from numbers import Integral


class PtrnetError(Exception):
    """Base class of all errors that ptrnet raises on purpose.

    The command line prints the message and exits with 2, or with 1 if a training has diverged.

    Examples:
        >>> try:
        ...     ptrnet.load("hull").solve("triangle")
        ... except ptrnet.PtrnetError as error:
        ...     print(error)
        instances: expected a list or an array, got str
    """

    exit_code = 2


class InputError(PtrnetError, ValueError):
    """An instance, an answer, a file or an option is invalid.

    Examples:
        >>> try:
        ...     ptrnet.load("hull").solve([[0, 0], [1, 0], [0, float("nan")]])
        ... except ptrnet.InputError as error:
        ...     print(error)
        instance 0: element 3, number 2: expected a finite number, got nan
    """


class ShapeError(InputError):
    """The shapes of arrays do not match."""


class ModelError(InputError):
    """A model does not exist, has damaged files, or cannot answer an instance.

    Examples:
        >>> try:
        ...     model = ptrnet.load("my-model")
        ... except ptrnet.ModelError:
        ...     model = ptrnet.load("hull")
    """


class NotFiniteError(ModelError):
    """A model's log-probabilities are not finite, so its answers would be meaningless."""


class OutputError(InputError):
    """A file could not be written completely, for example because the disk is full."""


class KilledError(PtrnetError):
    """A worker process was killed, probably by the system because memory was short."""


class DivergedError(PtrnetError, ArithmeticError):
    """The loss of a training is no longer finite. The command line exits with 1."""

    exit_code = 1


class MissingExtraError(PtrnetError, ImportError):
    """A feature needs optional packages that are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs the extra "{extra}": pip install "ptrnet[{extra}]"')
        self.feature, self.extra = feature, extra

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Pickle both arguments; by default, only the message would be passed to `__init__`."""
        return type(self), (self.feature, self.extra)


def check_package(package: str, feature: str, extra: str) -> None:
    """Raise MissingExtraError unless a package of an extra is installed."""
    if find_spec(package) is None:
        raise MissingExtraError(feature, extra)


class OutOfDistributionWarning(UserWarning):
    """An instance is out of distribution: its size is untrained, or its values are extreme.

    Examples:
        >>> import warnings
        >>> warnings.simplefilter("error", ptrnet.OutOfDistributionWarning)  # raise an error
    """


OutsideTraining = OutOfDistributionWarning  # a short name for filters of warnings


class AmbiguousInputWarning(UserWarning):
    """Input can be read, but the user may have meant something else."""


def warn_ambiguous(text: str) -> None:
    """Warn that the user may have meant something else than what ptrnet reads."""
    warnings.warn(text, AmbiguousInputWarning, stacklevel=2)


LISTED = 5  # a line for people names at most this many fields, features or values


_SYNONYMS = {"gpu": "cuda"}  # by spelling, "cpu" would be the nearest name


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return an error for an unknown name, with the nearest name and all names in its message."""
    known = sorted(known)
    nearest = [_SYNONYMS[name]] if _SYNONYMS.get(name) in known else []
    nearest = nearest or difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return InputError(f"unknown {kind} {short(name)}{hint} (known: {', '.join(known)})")


def short(value: object, length: int = 40) -> str:
    """Format a value for messages: text is quoted, and long values are truncated."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # Python refuses to format integers of more than 4300 digits
        text = f"{type(value).__name__} of very many digits"
    if len(text) > length:
        text = text[: length - 3] + "..."
    return repr(text) if isinstance(value, str) else text


def listed(parts: Iterable[str], most: int = LISTED) -> str:
    """Join the first parts by commas, and count the others.

    Examples:
        >>> listed(["a", "b", "c", "d"], most=2)
        'a, b, and 2 more'
    """
    parts = list(parts)
    rest = [f"and {len(parts) - most:,} more"] if len(parts) > most else []
    return ", ".join([*parts[:most], *rest])


def file_of(source: str) -> str:
    """Return the file of a source `FILE:LINE` or `FILE: row ROW`, which may end in `: "FIELD"`.

    Callers use the file to show a warning once for each file instead of once for each line.
    """
    match = re.fullmatch(r'(.+):(?: row )?\d+(?:: ".*")?', source, re.DOTALL)
    return match[1] if match else source


def check_int(name: str, value: object, minimum: int) -> int:
    """Convert a whole number to `int`. Numbers of NumPy's integer types are accepted.

    Raises:
        InputError: the value is not a whole number, is a boolean, or is below `minimum`.

    Examples:
        >>> check_int("size", np.int64(3), minimum=1)
        3
    """
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= minimum:
        return int(value)
    raise InputError(f"{name}: expected a whole number of {minimum} or more, got {short(value)}")
