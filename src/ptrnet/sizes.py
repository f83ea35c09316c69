"""Parse the sizes of instances from texts such as `50`, `5-50` and `5,10,20-30`."""

from collections.abc import Iterable
from itertools import groupby
from typing import Self

from ptrnet.errors import InputError, short

# The maximum size of an instance that is read, generated or solved. We refuse larger instances
# before we allocate memory for them.
LARGEST = 100_000


class Sizes(tuple[int, ...]):
    """Sizes of instances in increasing order. `str` returns the text that `__new__` parsed.

    Examples:
        >>> list(Sizes("5,10-12"))
        [5, 10, 11, 12]
    """

    _text: str

    def __new__(cls, text: str | int) -> Self:
        """Parse a text or a number.

        Raises:
            InputError: the text is not a list of numbers and ranges, a range ends before it begins,
                or a size is not in 1..LARGEST.
        """
        text, sizes = str(text), set[int]()
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            is_valid = first.isdecimal() and (not dash or last.isdecimal()) and part.isascii()
            if not is_valid or len(part) > 20:
                raise InputError(f"n: expected 50, 5-50 or 5,10,20-30, got {short(text)}")
            start, end = int(first), int(last or first)
            if not 1 <= start <= end <= LARGEST:
                raise InputError(f"n: expected 1 <= A <= B <= {LARGEST}, got {short(part.strip())}")
            sizes.update(range(start, end + 1))
        self = super().__new__(cls, sorted(sizes))
        self._text = text
        return self

    @classmethod
    def parse(cls, text: str | int) -> Self:
        """Parse the value of a setting; `ptrnet.settings.check` calls this method."""
        return cls(text)

    @classmethod
    def of(cls, sizes: Iterable[int]) -> Self:
        """Return sizes from numbers in any order. Repeated numbers count once."""
        runs = groupby(enumerate(sorted({int(n) for n in sizes})), lambda pair: pair[1] - pair[0])
        ends = ([n for _, n in run] for _, run in runs)
        return cls(",".join(f"{run[0]}-{run[-1]}" if run[1:] else f"{run[0]}" for run in ends))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Sizes({self._text!r})"

    def __getnewargs__(self) -> tuple[str]:
        """Return the argument of `__new__` for `copy` and `pickle`."""
        return (self._text,)
