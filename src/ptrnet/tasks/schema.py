"""Elements that are dictionaries: which of their fields a model reads, and as what numbers."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import AmbiguousInputWarning, InputError, short
from ptrnet.tasks.written_numbers import is_missing, is_written_number

MAX_CATEGORIES = 1000  # of a field; one of more is likely to be a name

Element = Mapping[str, Any]


@dataclass(frozen=True)
class Schema:
    """The fields of an element in the order in which a model reads them.

    A number is one feature; a text is one feature for each category, 1 for its own and 0 for the
    others. Fields that are not named here are not read.

    Args:
        fields: their names.
        categories: of each field the texts that it may be; none where it is a number.
        ignores_unknown: whether any other text is none of the categories, all 0, or refused.
    """

    fields: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    ignores_unknown: bool = False

    @property
    def is_category(self) -> NDArray[np.bool_]:
        """`(d,)`: which features tell a category."""
        parts = [[bool(texts)] * max(1, len(texts)) for texts in self.categories]
        return np.array([feature for part in parts for feature in part], bool)

    @property
    def feature_names(self) -> list[str]:
        """`d` names: of a number its field, of a category the field and its text."""
        return [
            name
            for field, texts in zip(self.fields, self.categories, strict=True)
            for name in ([f"{field} = {text}" for text in texts] or [field])
        ]

    def describe(self) -> str:
        """In words what is read: price (a number), colour (blue, red)."""
        pairs = zip(self.fields, self.categories, strict=True)
        return ", ".join(f"{field} ({_listed(t) if t else 'a number'})" for field, t in pairs)

    def encode(self, elements: Iterable[Element], source: str) -> list[list[Any]]:
        """The features of each element, `(n, d)`; numbers as they came.

        Raises:
            InputError: an element without one of the fields, a text for a number, a number for a
                text, or an unknown category.
        """
        return [
            [
                feature
                for field, texts in zip(self.fields, self.categories, strict=True)
                for feature in self._features(field, texts, element, f"{source}: element {k}")
            ]
            for k, element in enumerate(elements, 1)
        ]

    def read_fields(self, elements: Iterable[Element], source: str) -> list[Element]:
        """The elements with the fields alone that are read, their values as JSON has them."""
        return [
            {field: value_of(element, field, f"{source}: element {k}") for field in self.fields}
            for k, element in enumerate(elements, 1)
        ]

    def _features(
        self, field: str, texts: tuple[str, ...], element: Element, source: str
    ) -> list[Any]:
        value = value_of(element, field, source)
        if not texts:
            if is_text(value):
                raise InputError(f'{source}: "{field}": expected a number, got {short(value)}')
            return [value]
        if type(value) in (int, float):
            value = _text_of(value, texts)
        if not is_text(value):
            raise InputError(f'{source}: "{field}": expected a text, got {short(value)}')
        if value not in texts and not self.ignores_unknown:
            known = _listed(map(short, texts))
            raise InputError(
                f'{source}: "{field}": expected one of {known}, got {short(value)}, which no '
                "training example had"
            )
        return [float(value == text) for text in texts]


def infer_schema(
    instances: Iterable[tuple[Sequence[Element], str]],
    fields: Sequence[str] = (),
    ignores_unknown: bool = False,
) -> Schema:
    """The schema of all elements of instances, each with its source.

    Args:
        instances: every one that will be learned from.
        fields: those that are read, in this order; all of the first element where none is named.
        ignores_unknown: see `Schema`.

    Raises:
        InputError: an element without one of the fields, a field that is a number here and a text
            there, or one of too many texts.

    Warns:
        AmbiguousInputWarning: all texts of a field are numbers, and some have a point or a comma.
    """
    read = tuple(fields)
    texts: dict[str, set[str]] = {}
    for elements, source in instances:
        for k, element in enumerate(elements, 1):
            place = f"{source}: element {k}"
            if not texts:
                read = read or tuple(element)
                if not read:
                    raise InputError(f"{place}: expected a field to learn from, got none")
                _check_names(read, place)
                texts = {field: set() for field in read}
                are_texts = [f for f in read if is_text(value_of(element, f, place))]
            if not fields and not {*element} <= {*read}:
                added = next(field for field in element if field not in read)
                raise InputError(
                    f'{place}: "{added}": the first element has no such field; fill it in, or '
                    "name the fields that the model is to read (fields)"
                )
            for field in read:
                value = value_of(element, field, place)
                if is_text(value) != (field in are_texts):
                    expected = "a text" if field in are_texts else "a number"
                    is_missing_value = value is None or value != value  # NaN, as of frames
                    got = "a missing value" if is_missing_value else short(value)
                    raise InputError(
                        f'{place}: "{field}": expected {expected} as before, got {got}'
                    )
                if is_text(value):
                    _check_unicode(value, f'{place}: "{field}"')
                    texts[field].add(value)
                    if len(texts[field]) > MAX_CATEGORIES:
                        raise InputError(
                            f'{place}: "{field}": more than {MAX_CATEGORIES} different texts are '
                            "no categories; name the fields that the model is to read (fields)"
                        )
    for field in read:
        _check_none_missing(field, texts[field])
        _warn_of_numbers(field, texts[field])
    return Schema(read, tuple(tuple(sorted(texts[f])) for f in read), ignores_unknown)


def _check_none_missing(field: str, texts: set[str]) -> None:
    """Refuses numbers that one missing value among them has made categories."""
    others = {text for text in texts if not is_written_number(text)}
    if len(others) < len(texts) and others and all(map(is_missing, others)):
        raise InputError(
            f'"{field}": expected numbers alone, or texts, got numbers and {short(min(others))}: '
            "give these elements a number, or leave them out; a category is called otherwise"
        )


def _warn_of_numbers(field: str, texts: set[str]) -> None:
    with_points = [text.replace(",", ".", 1) for text in texts]
    if any("." in text for text in with_points) and all(map(is_written_number, with_points)):
        warnings.warn(
            f'"{field}": texts such as {short(min(texts))} are taken as categories; numbers stand '
            "without quotes",
            AmbiguousInputWarning,
            stacklevel=3,
        )


def value_of(element: Any, field: str, source: str) -> Any:
    """The value of a field: a number or a text. Raises InputError where there is none."""
    if not isinstance(element, Mapping):
        raise InputError(f"{source}: expected a dictionary, got {short(element)}")
    if field not in element:
        keys = ", ".join(map(str, element)) or "none"
        raise InputError(f'{source}: expected the field "{field}", got {short(keys)}')
    value = element[field]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        value = float(value)
    if not is_text(value) and not isinstance(value, Real):
        raise InputError(f'{source}: "{field}": expected a number or a text, got {short(value)}')
    return value


def _listed(texts: Iterable[str]) -> str:
    """The first ten texts, separated by commas; "..." stands for more."""
    names = list(texts)
    return ", ".join([*names[:10], *["..."] * (len(names) > 10)])


def _text_of(value: float, texts: tuple[str, ...]) -> Any:
    """A number as the category that it was: of sizes 10, 12.5 and XL a table may lack XL."""
    if value != value:
        return value
    written = [str(value)]
    if isinstance(value, float) and value.is_integer():
        written.append(str(int(value)))
    return next((text for text in written if text in texts), written[0])


def _check_names(fields: Sequence[Any], source: str) -> None:
    for field in fields:
        if not isinstance(field, str) or not field:
            raise InputError(f"{source}: expected texts as names of fields, got {short(field)}")
        _check_unicode(field, source)


def _check_unicode(text: str, source: str) -> None:
    """Refuses a lone surrogate, half a character: no file can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{source}: expected a text of whole characters, got {short(text)}"
        ) from None


def is_text(value: Any) -> bool:
    """Whether a value is a category rather than a number."""
    return isinstance(value, str)
