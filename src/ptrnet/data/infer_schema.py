"""Infer from the elements of a user's examples which fields a model reads, and as what numbers."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from ptrnet.data.cells import are_foreign_numbers, is_finite_number
from ptrnet.data.dataset import Dataset
from ptrnet.errors import AmbiguousInputWarning, InputError, short
from ptrnet.tasks.schema import Element, Place, Schema, is_empty, is_missing, to_numbers, value_of

MAX_CATEGORIES = 1000  # of a field; texts of a field with more are probably names
Missing = Literal["fill", "refuse"]


class Field:
    """What the values of a field are, as far as they have been seen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.texts: set[str] = set()
        self.missing = ""  # the place of the first value that is not there
        self._kind = ""  # of the values so far: "a number" or "a text"
        self._count, self._half_mean = 0, 0.0  # of the numbers that are there

    def add(self, values: Sequence[Any], place: Place) -> None:
        """Take notice of values. Refuse a text among numbers, a number among texts, and others."""
        kinds = [_kind_of(value) for value in values]
        for k, kind in enumerate(kinds):
            if not kind:
                self.missing = self.missing or place(k)
                continue
            self._kind = self._kind or kind
            if kind != self._kind:
                raise InputError(
                    f'{place(k)}: "{self.name}": expected {self._kind} as before, got '
                    f"{short(values[k])}"
                )
        if not self.is_number:
            new = {"" if is_empty(value) else value for value in values} - self.texts
            for text in filter(_has_half_characters, new):
                raise InputError(
                    f'{place(list(values).index(text))}: "{self.name}": expected a text of whole '
                    f"characters, got {short(text)}"
                )
            self.texts |= new
            return
        numbers = to_numbers(values, self.name, place)
        numbers = numbers[~np.isnan(numbers)]
        self._count += len(numbers)
        if len(numbers):  # halved: the difference of 1e308 and -1e308 is not a float
            half_mean = float(np.sum(numbers / (2 * len(numbers))))
            self._half_mean += (half_mean - self._half_mean) * (len(numbers) / self._count)

    @property
    def is_number(self) -> bool:
        """Whether all values that are there are numbers."""
        return self._kind == "a number"

    @property
    def is_like_names(self) -> bool:
        """Whether there are so many different texts that they are probably no categories."""
        return not self.is_number and len(self.texts) > MAX_CATEGORIES

    @property
    def mean(self) -> float:
        """The mean of the numbers that are there."""
        return 2 * self._half_mean

    def categories(self) -> tuple[str, ...]:
        """Return the texts in order, none for a number.

        Raises:
            InputError: there are too many, or they are numbers in quotes of which one is missing.

        Warns:
            AmbiguousInputWarning: all texts are numbers in a notation that we do not read.
        """
        if self.is_number:
            return ()
        if self.is_like_names:
            raise InputError(
                f'"{self.name}": more than {MAX_CATEGORIES} different texts are no categories; '
                "name the fields that the model is to read (fields)"
            )
        others = {text for text in self.texts if not is_finite_number(text)}
        if len(others) < len(self.texts) and others and all(map(is_missing, others)):
            raise InputError(
                f'"{self.name}": expected only numbers, or texts, got numbers in quotes and '
                f"{short(min(others))}; write numbers without quotes, or rename the category"
            )
        with_points = [text.replace(",", ".", 1) for text in self.texts]
        if any("." in text for text in with_points) and (
            all(map(is_finite_number, with_points)) or are_foreign_numbers(self.texts)
        ):
            warnings.warn(
                f'"{self.name}": texts such as {short(min(self.texts))} are taken as categories; '
                "write numbers as 1234.5, without quotes or units",
                AmbiguousInputWarning,
                stacklevel=4,
            )
        return tuple(sorted(self.texts))


def _kind_of(value: Any) -> str:
    """Return what a value is; empty if it is missing."""
    if type(value) in (int, float):  # the usual case, decided fast
        return "a number" if value == value else ""
    if is_missing(value):
        return ""
    return "a text" if isinstance(value, str) else "a number"


def _has_half_characters(text: str) -> bool:
    """Whether a text has half of a pair of code units, which no file can hold."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def schema_of(
    fields: Sequence[Field], ignores_unknown: bool = False, missing: Missing = "fill"
) -> Schema:
    """Return the schema of fields whose values have all been seen.

    Args:
        fields: in the order in which the model reads them.
        ignores_unknown: see `Schema`.
        missing: whether a missing number becomes the mean of the others and a feature that says so,
            or is refused. A missing text is the empty one.
    """
    gaps = [field for field in fields if field.missing and (field.is_number or missing == "refuse")]
    if gaps and missing == "refuse":
        raise InputError(f'{gaps[0].missing}: "{gaps[0].name}": expected a value, got none')
    return Schema(
        tuple(field.name for field in fields),
        tuple(field.categories() for field in fields),
        ignores_unknown,
        tuple((field.name, field.mean) for field in gaps),
    )


def infer_schema(
    instances: Iterable[tuple[Sequence[Element], str]],
    fields: Sequence[str] = (),
    ignores_unknown: bool = False,
    missing: Missing = "fill",
) -> Schema:
    """Return the schema of all elements of instances.

    Args:
        instances: the elements of each training instance, and its source.
        fields: the fields that the model reads, in this order; by default all of the first element.
        ignores_unknown: see `Schema`.
        missing: see `schema_of`.

    Raises:
        InputError: an element lacks one of the fields, a field is a number in one element and a
            text in another, or a field has too many different texts.
    """
    seen: list[Field] = []
    for elements, source in instances:

        def place(number: int, source: str = source) -> str:
            return f"{source}: element {number + 1}"

        if not seen:
            names = tuple(fields) or tuple(elements[0])
            if not names:
                raise InputError(f"{place(0)}: expected a field to learn from, got none")
            check_names(names, place(0))
            seen = [Field(name) for name in names]
            known = {*names}
        for k, element in enumerate(elements if not fields else ()):
            if not {*element} <= known:
                added = next(name for name in element if name not in known)
                raise InputError(
                    f'{place(k)}: "{added}": the first element has no such field; fill it in, or '
                    "name the fields that the model is to read (fields)"
                )
        for field in seen:
            field.add([value_of(e, field.name, place(k)) for k, e in enumerate(elements)], place)
    return schema_of(seen, ignores_unknown, missing)


def check_names(fields: Sequence[Any], source: str) -> None:
    """Refuse names of fields that are not texts of whole characters."""
    for field in fields:
        if not isinstance(field, str) or not field or _has_half_characters(field):
            raise InputError(f"{source}: expected texts as names of fields, got {short(field)}")


def context_of(data: Dataset, schema: Schema, named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the fields that all elements of an instance share, and not all instances.

    Args:
        data: the features of the examples, by the schema.
        schema: of the examples.
        named: the fields that the user named as context; looked for if empty.

    Raises:
        InputError: a named field is not one that the model reads, or differs within an instance.
    """
    for field in named:
        if field not in schema.fields:
            raise InputError(
                f'context: expected fields that the model reads, got "{field}"; it reads '
                f"{short(', '.join(schema.fields))}"
            )
    lows = np.minimum.reduceat(data.elements, data.starts[:-1], axis=0)
    highs = np.maximum.reduceat(data.elements, data.starts[:-1], axis=0)
    shared = []
    for field, end, width in zip(
        schema.fields, np.cumsum(schema.widths), schema.widths, strict=True
    ):
        low, high = lows[:, end - width : end], highs[:, end - width : end]
        differs = (low != high).any(1)
        if field in named and differs.any():
            row = int(differs.argmax())
            source = data.carried["source"][row] if "source" in data.carried else ""
            raise InputError(
                f'{source or f"example {row + 1}"}: "{field}": expected one value in all elements, '
                "as it is named context"
            )
        if not differs.any() and (low != low[0]).any() and data.sizes.max() > 1:
            shared.append(field)
    return tuple(named or shared)
