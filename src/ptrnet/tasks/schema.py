"""Elements that are dictionaries: how a model reads their fields as numbers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, short

Element = Mapping[str, Any]


@dataclass(frozen=True)
class Schema:
    """The fields of an element in the order in which a model reads them.

    A number is one feature. A text is one feature for each category, 1 for its own and 0 for the
    others. The model does not read other fields.

    Args:
        fields: the names of the fields.
        categories: the texts that each field may be; empty for a number.
        ignores_unknown: whether to encode any other text as all 0 instead of refusing it.
    """

    fields: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    ignores_unknown: bool = False

    @property
    def is_category(self) -> NDArray[np.bool_]:
        """`(d,)`: whether a feature belongs to a category."""
        parts = [[bool(texts)] * max(1, len(texts)) for texts in self.categories]
        return np.array([feature for part in parts for feature in part], bool)

    @property
    def feature_names(self) -> list[str]:
        """`d` names: the field of a number, or the field and the text of a category."""
        return [
            name
            for field, texts in zip(self.fields, self.categories, strict=True)
            for name in ([f"{field} = {text}" for text in texts] or [field])
        ]

    def describe(self) -> str:
        """The fields in words: price (a number), colour (blue, red)."""
        pairs = zip(self.fields, self.categories, strict=True)
        return ", ".join(f"{field} ({_listed(t) if t else 'a number'})" for field, t in pairs)

    def encode(self, elements: Iterable[Element], source: str) -> list[list[Any]]:
        """Return the features of each element, `(n, d)`, numbers in their own type.

        Raises:
            InputError: an element lacks a field, or has a text for a number, a number for a text,
                or an unknown category.
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
        """Return the elements with only the fields that the model reads, as JSON values."""
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


def value_of(element: Any, field: str, source: str) -> Any:
    """Return the value of a field, a number or a text, or raise InputError."""
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
    """Join the first ten texts by commas, with "..." if there are more."""
    names = list(texts)
    return ", ".join([*names[:10], *["..."] * (len(names) > 10)])


def _text_of(value: float, texts: tuple[str, ...]) -> Any:
    """Return a number as the category that it was in training.

    If sizes were 10, 12.5 and XL, a later table without XL has a column of numbers.
    """
    if value != value:
        return value
    written = [str(value)]
    if isinstance(value, float) and value.is_integer():
        written.append(str(int(value)))
    return next((text for text in written if text in texts), written[0])


def is_text(value: Any) -> bool:
    """Whether a value is a category rather than a number."""
    return isinstance(value, str)
