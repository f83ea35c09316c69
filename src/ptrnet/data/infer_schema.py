"""Infer the schema of a user's elements: the fields that a model reads, and their categories."""

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from itertools import islice
from typing import Any, NamedTuple
from unicodedata import category

import numpy as np

from ptrnet.data.cells import CURRENCY, are_foreign_numbers, is_finite_number
from ptrnet.errors import InputError, listed, short, warn_ambiguous
from ptrnet.tasks.schema import (
    Element,
    Level,
    Missing,
    Place,
    Schema,
    category_of,
    columns_of,
    is_empty,
    is_missing,
    place_of,
    plain_numbers,
    to_numbers,
)
from ptrnet.types import Dataset, Floats, Indices

MAX_CATEGORIES = 1000  # a field with more different texts probably holds names
# Limits of `Field.common`. docs/dev/own-data-defaults.md has the measurements.
COMMON_SETS, COMMON_SHARE = 20, 0.05  # a common number is in at least these sets and this share
COMMON_FACTOR = 2  # common numbers are at least this many times as frequent as the next number
DIFFERENT = 20  # a field with fewer different numbers has no common numbers
COUNTED = 20_000  # if a field has more numbers, we count a sample of at most about this size
# A numeric field may hold codes if it has this many different numbers, if all of them are whole,
# and if each number occurs CODE_REPEATS times on average.
FEWEST_CODES, MOST_CODES, CODE_REPEATS = 3, 30, 10
WRITE_NUMBERS = "write numbers as 1234.5, without quotes or units"
MAKE_NUMBERS = (
    "make a number of it, such as the month, or list the fields that the model should read (fields)"
)
_TOGETHER = 256  # how many instances are read at once


class Reading(NamedTuple):
    """How to read elements with named fields."""

    # The fields that the model reads. If empty, all fields, except that a long table leaves out
    # some fields (see `infer_sets`).
    fields: Sequence[str] = ()
    missing: Missing = "fill"  # whether missing values are filled in or refused
    # The fields that have one value in all elements of an instance; inferred if empty.
    context: Sequence[str] = ()
    group: str = ""  # the field of groups, which the model does not read. Empty if there is none.
    # The fields that are categories, even if their values are numbers.
    categories: Sequence[str] = ()
    # Whether each common number of a field has a feature of its own. Fields with a sign never have
    # such features, because their effects could have any sign.
    marks_common: bool = True
    # The fields of which a higher number never makes an element less probable.
    increasing: Sequence[str] = ()
    # The fields of which a higher number never makes an element more probable.
    decreasing: Sequence[str] = ()

    def check_unused(self, source: str) -> None:
        """Refuse names of fields, because the elements are rows of numbers."""
        for name in OF_FIELDS:
            if getattr(self, name):
                raise InputError(
                    f"{source}: {name} needs elements with named fields (objects, dictionaries or "
                    "data frames), got rows of numbers"
                )


AS_IT_IS = Reading()
# The names of fields that a user may list.
OF_FIELDS = ("fields", "context", "categories", "increasing", "decreasing")


class CountedNumbers:
    """The numbers of a field, each with its set; a sample of at most about COUNTED of them."""

    def __init__(self) -> None:
        self._numbers, self._sets = np.empty(0), np.empty(0, np.int64)
        self._seen, self._share = 0, 1.0  # the share of the numbers seen that is in the sample
        self._rng = np.random.default_rng(0)

    def add(self, numbers: Floats, sets: Indices) -> None:
        """Add numbers, and the index of the set of each."""
        self._seen += len(numbers)
        share = 1.0
        while self._seen * share > COUNTED:
            share /= 2
        kept = self._rng.random(len(self._numbers)) < share / self._share
        new = self._rng.random(len(numbers)) < share
        self._numbers = np.concatenate([self._numbers[kept], numbers[new]])
        self._sets = np.concatenate([self._sets[kept], sets[new]])
        self._share = share

    def common(self) -> tuple[float, ...]:
        """Return the numbers that are much more frequent than all others, in ascending order."""
        numbers, codes, counts = np.unique(self._numbers, return_inverse=True, return_counts=True)
        if len(numbers) < DIFFERENT:
            return ()
        ascending = np.sort(counts)
        stands_out = ascending[1:] >= COMMON_FACTOR * ascending[:-1]
        stands_out &= ascending[1:] >= max(COMMON_SHARE * len(self._numbers), COMMON_SETS)
        if not stands_out.any():
            return ()
        frequent = np.flatnonzero(counts >= np.min(ascending[1:][stands_out])).tolist()
        in_sets = (len(np.unique(self._sets[codes == k])) for k in frequent)
        return tuple(
            float(numbers[k])
            for k, count in zip(frequent, in_sets, strict=True)
            if count >= COMMON_SETS
        )


class Field:
    """Summary of a field. `add` adds values to the summary.

    If the user named the field as a category, its numbers are codes.
    """

    def __init__(self, name: str, is_category: bool = False) -> None:
        self.name, self.is_category = name, is_category
        self.texts: set[str] = set()
        self.missing = ""  # where the first missing value is, for error messages
        self.mean = 0.0  # of the numbers so far
        self._kind = ""  # "a number" or "a text"; empty if all values so far are missing
        self._count, self._counted = 0, CountedNumbers()

    def add(self, values: Sequence[Any], sets: Indices, place: Place) -> None:
        """Add the values of n elements. Refuse a field that has both numbers and texts.

        `sets` `(n,)` are the indices of their sets, and `place` names element k in messages.
        """
        if self.is_category:
            values = [self._level(value, place, k) for k, value in enumerate(values)]
        # A fast path for the usual case: numbers without gaps.
        plain = None if self._kind == "a text" else plain_numbers(values)
        if plain is not None and len(values):
            self._kind = "a number"
        for k, value in enumerate(values if plain is None else ()):
            kind = "a text" if isinstance(value, str) else "a number"
            if is_missing(value):
                self.missing = self.missing or place(k)
            elif isinstance(value, date):
                raise InputError(
                    f'{place(k)}: "{self.name}": expected a number or a text, got the date '
                    f"{value}; {MAKE_NUMBERS}"
                )
            elif kind != (self._kind or kind):
                raise InputError(
                    f'{place(k)}: "{self.name}": expected {self._kind} as before, got '
                    f"{short(value)}"
                )
            else:
                self._kind = kind
        if not self.is_number:
            new = {"" if is_empty(value) else value for value in values} - self.texts
            for text in filter(_has_surrogates, new):
                raise InputError(
                    f'{place(list(values).index(text))}: "{self.name}": expected a text that UTF-8 '
                    f"can encode, got {short(text)}"
                )
            self.texts |= new
            return
        numbers = to_numbers(values, self.name, place) if plain is None else plain
        sets, numbers = sets[~np.isnan(numbers)], numbers[~np.isnan(numbers)]
        self._counted.add(numbers, sets)
        self._count += len(numbers)
        if len(numbers):  # divide first, because the sum may overflow
            mean = float(np.sum(numbers / len(numbers)))
            self.mean += (mean - self.mean) * (len(numbers) / self._count)

    def _level(self, value: Any, place: Place, k: int) -> Level | None:
        text = category_of(value)
        if text is None:
            raise InputError(
                f'{place(k)}: "{self.name}": expected a number or a text, got {short(value)}'
            )
        return Level(text) if text else None

    @property
    def is_number(self) -> bool:
        """Whether the field has numbers, and no texts. Missing values do not matter."""
        return self._kind == "a number"

    @property
    def is_empty(self) -> bool:
        """Whether the field tells nothing, because all its values are missing in the same way."""
        return not self._kind and len(self.texts) <= 1

    @property
    def is_like_names(self) -> bool:
        """Whether there are too many different texts for categories."""
        return not self.is_number and len(self.texts) > MAX_CATEGORIES

    @property
    def common(self) -> tuple[float, ...]:
        """The numbers that are much more frequent than all others, in ascending order.

        Such a number may mean more than its size: it may be a code such as 999, or what people
        wrote in place of missing numbers.
        """
        return self._counted.common()

    @property
    def _is_categorical(self) -> bool:
        """Whether the type of a column says that its texts are categories, or the user does."""
        return any(isinstance(text, Level) for text in self.texts)

    def categories(self) -> tuple[str, ...]:
        """Return the different texts in alphabetical order; an empty tuple for numbers.

        Raises:
            InputError: there are too many different texts, or some texts are numbers in quotes
                and all others are missing values.
        """
        if self.is_number:
            return ()
        if self.is_like_names:
            raise InputError(
                f'"{self.name}": expected at most {MAX_CATEGORIES} different texts, got more; list '
                "the fields that the model should read (fields)"
            )
        others = {text for text in self.texts if not is_finite_number(text)}
        has_numbers = len(others) < len(self.texts) and not self._is_categorical
        if has_numbers and others and all(map(is_missing, others)):
            raise InputError(
                f'"{self.name}": expected numbers or texts, got numbers in quotes and '
                f"{short(min(others))}; write numbers without quotes, or rename the category"
            )
        return tuple(sorted(map(str, self.texts)))

    @property
    def has_foreign_numbers(self) -> bool:
        """Whether all texts are numbers, in quotes or in a notation that we do not read.

        At least one text has a point, a comma, a percent sign, or the sign or code of a
        currency. Missing values do not matter.
        """
        if self.is_number or self._is_categorical:
            return False
        texts = [text for text in self.texts if not is_missing(text)]
        with_points = [text.replace(",", ".", 1) for text in texts]
        has_sign = any(c in ".%" or category(c) == "Sc" for text in with_points for c in text)
        has_sign = has_sign or any(re.search(CURRENCY, text) for text in texts)
        return has_sign and (all(map(is_finite_number, with_points)) or are_foreign_numbers(texts))

    @property
    def has_dates(self) -> bool:
        """Whether all texts are dates, such as 2025-01-31. Missing values do not matter."""
        texts = [text for text in self.texts if not is_missing(text)]
        return bool(texts) and not self._is_categorical and all(map(_is_date, texts))

    @property
    def example(self) -> str:
        """The first text in alphabetical order that does not mean a missing value."""
        return min((text for text in self.texts if not is_missing(text)), default="")


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return "-" in text


def _has_surrogates(text: str) -> bool:
    """Whether a text has lone surrogates, which UTF-8 cannot encode."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def schema_of(fields: Sequence[Field], reading: Reading = AS_IT_IS) -> Schema:
    """Return the schema of fields to which all values have been added.

    Args:
        fields: the fields, in the order in which the model reads them.
        reading: how the fields were read. Its `missing` "refuse" refuses missing values. "fill"
            replaces a missing number by the mean of its field, and adds a feature that marks filled
            numbers. "fill" replaces a missing text by the empty text.

    Raises:
        InputError: a value is missing and `missing` is "refuse", or all fields are empty.

    Warns:
        AmbiguousInputWarning: fields are empty in all examples. The model does not read them. Or
            fields have dates, or numbers in a notation that we do not read, which become
            categories.
    """
    missing = reading.missing
    gaps = [field for field in fields if field.missing and (field.is_number or missing == "refuse")]
    if gaps and missing == "refuse":
        raise InputError(f'{gaps[0].missing}: "{gaps[0].name}": expected a value, got none')
    if empty := listed(f'"{field.name}"' for field in fields if field.is_empty):
        read = [field for field in fields if not field.is_empty]
        if not read:
            raise InputError(f"{empty}: expected a value in some example, got none")
        those = "the field" if len(fields) - len(read) == 1 else "these fields"
        warn_ambiguous(
            f"{empty}: no training example has a value, so the model does not read {those}"
        )
        fields = read
    categories = tuple(field.categories() for field in fields)
    has_sign = {*reading.increasing, *reading.decreasing}
    if foreign := [field for field in fields if field.has_foreign_numbers]:
        names = listed(f'"{field.name}"' for field in foreign)
        warn_ambiguous(
            f"{names}: texts such as {short(foreign[0].example)} are read as categories; "
            f"{WRITE_NUMBERS}"
        )
    if dated := listed(f'"{field.name}"' for field in fields if field.has_dates):
        warn_ambiguous(f"{dated}: each date is read as a category of its own; {MAKE_NUMBERS}")
    return Schema(
        tuple(field.name for field in fields),
        categories,
        fills=tuple((field.name, field.mean) for field in gaps),
        increasing=tuple(reading.increasing),
        decreasing=tuple(reading.decreasing),
        common=tuple(
            field.common if reading.marks_common and field.name not in has_sign else ()
            for field in fields
        ),
    )


def infer_schema(
    instances: Iterable[tuple[Sequence[Element], str]], reading: Reading = AS_IT_IS
) -> Schema:
    """Infer the schema of all elements of the training instances.

    By default, the model reads all fields of the first element, and all other elements must have
    the same fields.

    Args:
        instances: pairs of the elements of an instance, and the source of the instance.
        reading: how to read the elements. Its context is not used.

    Raises:
        InputError: an element lacks a field, a field has both numbers and texts, or a field has
            too many different texts. Or the model does not read one of `categories`.

    Examples:
        >>> offers = [{"price": 3, "colour": "red"}, {"price": 2, "colour": "blue"}]
        >>> schema = infer_schema([(offers, "offers")])
        >>> schema.fields, schema.categories
        (('price', 'colour'), ((), ('blue', 'red')))
    """
    fields, group, categories = reading.fields, reading.group, reading.categories
    seen: list[Field] = []
    rest, count = iter(instances), 0
    while part := list(islice(rest, _TOGETHER)):
        elements = [element for values, _ in part for element in values]
        sizes = [len(values) for values, _ in part]
        place = place_of([source for _, source in part], np.cumsum([0, *sizes]))
        if not seen:
            ignored = {group} if group else set()
            names = tuple(fields) or tuple(name for name in elements[0] if name not in ignored)
            if not names:
                raise InputError(f"{place(0)}: expected a field to learn from, got none")
            check_names(names, place(0))
            check_read("categories", categories, names)
            seen = [Field(name, name in categories) for name in names]
            known = {*names, *ignored}
        for k, element in enumerate(elements if not fields else ()):
            if not {*element} <= known:
                added = next(name for name in element if name not in known)
                raise InputError(
                    f'{place(k)}: "{added}": the first element has no such field; add it there, or '
                    "list the fields that the model should read (fields)"
                )
        sets = np.repeat(np.arange(count, count + len(part)), sizes)
        count += len(part)
        columns = columns_of(elements, (field.name for field in seen), place)
        for field, values in zip(seen, columns, strict=True):
            field.add(values, sets, place)
    return schema_of(seen, reading)


def check_names(fields: Sequence[Any], source: str) -> None:
    """Refuse names of fields that are not texts, are empty, or cannot be encoded as UTF-8."""
    for field in fields:
        if not isinstance(field, str) or not field or _has_surrogates(field):
            raise InputError(f"{source}: expected texts as names of fields, got {short(field)}")


def check_read(key: str, named: Sequence[str], fields: Sequence[str]) -> None:
    """Refuse a name in the option `key` that is not one of the fields that the model reads."""
    for field in named:
        if field not in fields:
            raise InputError(
                f'{key}: expected fields that the model reads, got "{field}"; it reads '
                f"{short(', '.join(fields))}"
            )


def whole_number_fields(data: Dataset, schema: Schema) -> dict[str, tuple[int, int]]:
    """Return the numeric fields with few different numbers, all of them whole.

    These numbers may be codes of categories, such as 1 to 9 for the purpose of a trip. Each field
    has its smallest and its largest number. If the encoded examples have more than COUNTED
    elements, only a part of the elements, evenly spaced, is examined.
    """
    sample = data.elements[:: -(-len(data.elements) // COUNTED)]
    fills, found = dict(schema.fills), {}
    for field, texts, part in zip(schema.fields, schema.categories, schema.slices, strict=True):
        numbers = sample[:, part.start]
        if field in fills:  # the next feature marks missing numbers
            numbers = numbers[sample[:, part.start + 1] == 0]
        different = np.unique(numbers)
        is_few = FEWEST_CODES <= len(different) <= min(MOST_CODES, len(numbers) // CODE_REPEATS)
        if not texts and is_few and (different == np.round(different)).all():
            found[field] = (int(different[0]), int(different[-1]))
    return found


def context_of(data: Dataset, schema: Schema, named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the context fields.

    A context field has the same value in all elements of an instance, but not in all instances.
    They are inferred from the encoded examples if the user named none. Raises InputError if the
    model does not read a named field, or a named field differs within an instance.
    """
    check_read("context", named, schema.fields)
    lows = np.minimum.reduceat(data.elements, data.starts[:-1], axis=0)
    highs = np.maximum.reduceat(data.elements, data.starts[:-1], axis=0)
    shared = []
    for field, part in zip(schema.fields, schema.slices, strict=True):
        low, high = lows[:, part], highs[:, part]
        differs = (low != high).any(1)
        if field in named and differs.any():
            row = int(differs.argmax())
            source = data[row].source
            raise InputError(
                f'{source or f"example {row + 1}"}: "{field}": expected one value in all elements, '
                "because this field is named as context"
            )
        if not differs.any() and (low != low[0]).any() and data.sizes.max() > 1:
            shared.append(field)
    return tuple(named or shared)
