"""Convert elements that are dictionaries to the numbers that a model reads.

A `Schema` says how the fields of an element become numbers, a `Layout` how the rows of a table
become elements. In a long table, each row is an element. In a wide table, each row is a set, and
the fields of each alternative are in columns of their own, such as `train_cost` and `car_cost`.
"""

import contextlib
import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import chain, compress, pairwise, repeat
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, listed, short

Element = Mapping[str, Any]
Place = Callable[[int], str]  # gives the name of element k for messages
Unknown = Literal["missing", "refuse"]
Missing = Literal["fill", "refuse"]
LARGEST_UNROUNDED = 2.0**53 - 1  # float64 rounds some larger whole numbers
_NUMBERS = {int, float, bool, type(None)}  # that NumPy converts at once
_MISSING = {"", "--", ".", "?", "#n/a", "n/a", "na", "nan", "nil", "null", "missing"}
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0*")  # 1.0, as pandas writes whole numbers next to gaps
_BOOLEANS = {"true": True, "false": False}  # as texts of pandas, polars and R, in lower case
_SHEET_ERROR = re.compile(r"#[A-Z0-9/]+[!?]")  # #DIV/0!, #NAME?


class Level(str):
    """A value of a categorical column. It is a text, even if it looks like a number."""

    __slots__ = ()


@dataclass(frozen=True)
class Schema:
    """The fields of an element in the order in which a model reads them.

    A number becomes one feature. If the number may be missing, a second feature is 1 for missing
    numbers and 0 otherwise. Each common number of the field adds a feature, which is 1 for numbers
    that equal the common number and 0 otherwise. A text becomes one feature for each category: 1
    for the category that equals the text, and 0 for all others. The model does not read other
    fields.

    A text that training did not see is treated as a missing one. If training had missing texts,
    they are a category, the empty text. Otherwise all features of the field are 0. A missing number
    becomes the mean of its field if training had no missing ones.

    Args:
        fields: the names of the fields.
        categories: the known texts of each field; empty for a number.
        unknown: whether a text that training did not see is treated as missing, or is an error.
        missing: whether a missing text that training did not see is an error.
        fills: for each field whose number may be missing, the number that replaces a missing one.
        context: the fields that have one value in all elements of an instance.
        increasing: the fields of which a higher number never makes an element less probable.
        decreasing: the fields of which a higher number never makes an element more probable.
        common: for each field, the numbers that count as common. Without this argument, no field
            has common numbers.
        means: for each field, the number that replaces a missing one, in fields without `fills`.
            Without this argument, such a missing number is an error.

    Examples:
        >>> schema = Schema(("price", "colour"), ((), ("blue", "red")))
        >>> schema.encode([{"price": 3, "colour": "red"}], "offers")
        array([[3., 0., 1.]])
    """

    fields: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    unknown: Unknown = "refuse"
    missing: Missing = "fill"
    fills: tuple[tuple[str, float], ...] = ()
    context: tuple[str, ...] = ()
    increasing: tuple[str, ...] = ()
    decreasing: tuple[str, ...] = ()
    common: tuple[tuple[float, ...], ...] = ()
    means: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.common:
            object.__setattr__(self, "common", ((),) * len(self.fields))

    @cached_property
    def slices(self) -> list[slice]:
        """The features of each field."""
        stops = np.cumsum([0, *map(len, self._names)]).tolist()
        return [slice(start, stop) for start, stop in pairwise(stops)]

    @property
    def is_category(self) -> NDArray[np.bool_]:
        """`(d,)` booleans: whether a feature marks a category or a number by 0 or 1."""
        is_number = [not texts for texts in self.categories]
        return ~self._first_features(is_number)

    @property
    def is_filled(self) -> NDArray[np.bool_]:
        """`(d,)` booleans: whether a feature is a number that may be missing."""
        fills = dict(self.fills)
        return self._first_features([field in fills for field in self.fields])

    @property
    def signs(self) -> NDArray[np.int64]:
        """`(d,)`: 1 for the numbers of `increasing` fields, -1 for those of `decreasing` ones."""
        rises, falls = (
            self._first_features([field in named for field in self.fields]).astype(int)
            for named in (self.increasing, self.decreasing)
        )
        return rises - falls

    def _first_features(self, chosen: Sequence[bool]) -> NDArray[np.bool_]:
        """Return `(d,)`: whether a feature is the first one of a chosen field."""
        mask = np.zeros(len(self.feature_names), bool)
        mask[[part.start for part in compress(self.slices, chosen)]] = True
        return mask

    @property
    def feature_names(self) -> list[str]:
        """The names of the d features, such as `price`, `price is missing` or `colour = blue`."""
        return [name for names in self._names for name in names]

    @cached_property
    def _names(self) -> list[list[str]]:
        """The names of the features of each field."""
        fills = dict(self.fills)
        return [
            [f"{field} = {text}" for text in texts]
            or [
                field,
                *[f"{field} is missing"] * (field in fills),
                *(f"{field} = {_written(number)}" for number in common),
            ]
            for field, texts, common in zip(self.fields, self.categories, self.common, strict=True)
        ]

    @cached_property
    def _codes(self) -> list[dict[str, int]]:
        """For each field, the position of each category."""
        return [{text: k for k, text in enumerate(texts)} for texts in self.categories]

    def describe(self, most: int | None = None) -> str:
        """Describe the fields in words: `price (a number), colour (blue, red)`.

        If there are more than `most` fields, only describe the first of them.
        """
        fills, words = dict(self.fills), []
        for field, texts, common in zip(self.fields, self.categories, self.common, strict=True):
            what = _listed(texts) if texts else "a number"
            what += ", if there is one" * (field in fills)
            what += f", often {_listed(map(_written, common))}" * bool(common)
            what += ", of the whole set" * (field in self.context)
            what += ", the higher the better" * (field in self.increasing)
            what += ", the lower the better" * (field in self.decreasing)
            words.append(f"{field} ({what})")
        return listed(words, most or len(words))

    def encode(self, elements: Iterable[Element], source: str) -> NDArray[np.float64]:
        """Return the features of each element, `(n, d)`.

        Raises:
            InputError: an element lacks a field, has a text instead of a number, or has an unknown
                category.
        """

        elements = list(elements)
        place = place_of([source], [0])
        columns = columns_of(elements, self.fields, place)
        features = np.zeros((len(columns[0]), self.slices[-1].stop))
        # All numbers at once: an instance has few elements, but may have hundreds of fields.
        numeric = [
            k
            for k, cells in enumerate(columns)
            if {*map(type, cells)} <= _NUMBERS and not (self.categories[k] or self.common[k])
        ]
        numbers = np.full((len(numeric), len(features)), np.nan)
        with contextlib.suppress(OverflowError):  # `encode_field` refuses such a number
            numbers[:] = np.array([columns[k] for k in numeric], np.float64).reshape(numbers.shape)
        is_usual = (np.abs(numbers) <= LARGEST_UNROUNDED).all(1)  # False for NaN, too
        usual = [*compress(numeric, is_usual.tolist())]
        features[:, [self.slices[k].start for k in usual]] = numbers[is_usual].T
        for k in sorted({*range(len(columns))} - {*usual}):
            features[:, self.slices[k]] = self.encode_field(k, columns[k], place)
        return features

    def encode_field(self, field: int, values: Sequence[Any], place: Place) -> NDArray[np.float64]:
        """Return the features of one field, `(n, width)`.

        Args:
            field: the position of the field in `fields`.
            values: the values of n elements.
            place: a function that returns the name of element k for messages.

        Raises:
            InputError: a value does not suit the field.
        """
        name, codes = self.fields[field], self._codes[field]
        if codes:
            one_hot = np.zeros((len(values), len(codes)))
            for k, value in enumerate(values):
                text = _text_of(value, codes)
                if text is None:
                    raise InputError(f'{place(k)}: "{name}": expected a text, got {short(value)}')
                if text in codes:
                    one_hot[k, codes[text]] = 1
                elif self.accepts(text):
                    one_hot[k, [codes[""]] if "" in codes else []] = 1
                else:
                    known = _listed(map(short, codes))
                    raise InputError(
                        f'{place(k)}: "{name}": expected one of {known}, got {short(text)}, which '
                        "no training example had"
                    )
            return one_hot
        numbers = plain_numbers(values)
        if numbers is None:
            numbers = to_numbers([*map(_boolean_of, values)], name, place)
        is_missing, fill = np.isnan(numbers), self.fill(field)
        if fill is None and is_missing.any():
            k = int(is_missing.argmax())
            raise InputError(
                f'{place(k)}: "{name}": expected a number, got {short(values[k])}; no training '
                "example lacks it, so the model has no value for a missing one"
            )
        # Compare as float32, because a column of float32 holds rounded numbers.
        common = np.array(self.common[field], np.float32)
        with np.errstate(over="ignore"):
            is_common = numbers.astype(np.float32)[:, None] == common
        marks = [is_missing] if name in dict(self.fills) else []
        return np.column_stack([np.where(is_missing, fill or 0, numbers), *marks, is_common])

    def accepts(self, text: str) -> bool:
        """Whether a text that training did not see is treated as missing."""
        return self.unknown == "missing" and (bool(text) or self.missing == "fill")

    def fill(self, field: int) -> float | None:
        """Return the number that replaces a missing one, or None if a missing one is an error."""
        mean = self.means[field] if self.means else None
        return dict(self.fills).get(self.fields[field], mean)

    def unseen(self, elements: Sequence[Element]) -> Counter[tuple[str, str]]:
        """Count the values that `encode` treats as missing, and training did not see.

        Returns:
            For each name of a field and text, the number of elements that have it. The text is
            empty for missing values.
        """
        fills, found = dict(self.fills), Counter[tuple[str, str]]()
        for name, codes in zip(self.fields, self._codes, strict=True):
            if not codes and name in fills:
                continue
            # 0: a column of .svmlight that is not there
            cells = [element.get(name, 0) for element in elements]
            kinds = {*map(type, cells)}
            if not codes and kinds <= {float, int} and not math.isnan(sum(cells)):
                continue  # a fast path for the usual case: numbers that are not NaN
            # Other values than texts may be equal and mean different texts, such as 1 and True.
            for value, count in Counter(cells).items() if kinds == {str} else zip(cells, repeat(1)):
                if codes and _text_of(value, codes) not in codes:
                    found[name, "" if is_empty(value) else str(value)] += count
                elif not codes and is_missing(value):
                    found[name, ""] += count
        return found


def with_context(elements: Any, context: Any, source: str) -> Any:
    """Return the elements of an instance with the fields of its context added.

    Args:
        elements: the elements.
        context: a dictionary of the fields that all elements share. Any other value is ignored.
        source: the place of the instance, for messages.

    Raises:
        InputError: elements are not a list of dictionaries, or already have a field of the
            context.
    """
    if not isinstance(context, Mapping):
        return elements
    if not isinstance(elements, list) or not all(isinstance(e, Mapping) for e in elements):
        raise InputError(f'{source}: "context" needs elements that are objects')
    for k, element in enumerate(elements, 1):
        for field in context:
            if field in element:
                raise InputError(f'{source}: element {k}: "{field}" is in "context", too')
    return [{**element, **context} for element in elements]


def without_context(elements: Iterable[Element], context: Any) -> list[Element]:
    """Return elements without the fields that `with_context` has added."""
    shared = context if isinstance(context, Mapping) else {}
    return [{f: value for f, value in e.items() if f not in shared} for e in elements]


class Numbers(Sequence[Any]):
    """A column of numbers in an array, whose items and slices are Python's numbers and lists.

    So code that expects a list of numbers can read it.

    Args:
        array: `(n,)` integers or floats. It may be the user's memory, so nothing writes into it.

    Examples:
        >>> list(Numbers(np.array([3, 1])))
        [3, 1]
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array.tolist())

    def __getitem__(self, key: Any) -> Any:
        return self.array[key].tolist()  # a number, or a list of numbers


def plain_numbers(values: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return numbers as float64; None if some are missing, or need a closer look."""
    if isinstance(values, Numbers):
        numbers = values.array.astype(np.float64)
        return numbers if (np.abs(numbers) <= LARGEST_UNROUNDED).all() else None
    if {*map(type, values)} <= _NUMBERS:
        with contextlib.suppress(OverflowError):  # a whole number beyond float64
            numbers = np.array(values, np.float64)
            if (np.abs(numbers) <= LARGEST_UNROUNDED).all():  # False for NaN, too
                return numbers
    return None


def to_numbers(values: Sequence[Any], name: str, place: Place) -> NDArray[np.float64]:
    """Return the numbers of a field as float64, with NaN for missing numbers.

    Raises:
        InputError: a value is not a number, is infinite, or is a whole number that float64 would
            round.
    """
    plain = plain_numbers(values)
    if plain is not None:
        return plain
    numbers = np.empty(len(values))
    for k, value in enumerate(values):
        number = value.item() if isinstance(value, np.generic) else value
        if is_missing(number):
            numbers[k] = np.nan
            continue
        if not isinstance(number, Real | Decimal):
            raise InputError(f'{place(k)}: "{name}": expected a number, got {short(value)}')
        try:
            numbers[k] = float(number)
        except OverflowError:
            numbers[k] = np.inf
        if not np.isfinite(numbers[k]):
            raise InputError(f'{place(k)}: "{name}": expected a finite number, got {short(value)}')
        if isinstance(number, Integral) and int(numbers[k]) != int(number):
            raise InputError(
                f'{place(k)}: "{name}": expected whole numbers that float64 holds, got {number}, '
                f"which it rounds to {numbers[k]:.0f}"
            )
    return numbers


def place_of(sources: Sequence[str], starts: Sequence[int] | NDArray[np.int64]) -> Place:
    """Return a function that gives the name of element k of all elements, for messages.

    Args:
        sources: the names of the instances.
        starts: the number of the first element of each instance.
    """

    def place(k: int) -> str:
        row = bisect_right(starts, k) - 1
        return f"{sources[row]}: element {k - starts[row] + 1}"

    return place


def columns_of(elements: Sequence[Any], fields: Iterable[str], place: Place) -> list[Sequence[Any]]:
    """Return the values of each field. NumPy's numbers become Python's.

    Raises:
        InputError: an element is not a dictionary, or lacks a field; or a value is not a number,
            a text or empty. `place` returns the name of element k.
    """
    fields = list(fields)
    if {*map(type, elements)} <= {dict}:
        with contextlib.suppress(KeyError):
            columns: list[Sequence[Any]] = [[e[field] for e in elements] for field in fields]
            if {*map(type, chain.from_iterable(columns))} <= {*_NUMBERS, str, Level}:
                return columns
    return [[_value_of(e, f, k, place) for k, e in enumerate(elements)] for f in fields]


def _value_of(element: Any, field: str, k: int, place: Place) -> Any:
    if not isinstance(element, Mapping):
        raise InputError(f"{place(k)}: expected a dictionary, got {short(element)}")
    if field not in element:
        keys = ", ".join(map(str, element)) or "none"
        raise InputError(f'{place(k)}: expected the field "{field}", got {short(keys)}')
    value = element[field]
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, str | Real | Decimal) and not is_empty(value):
        raise InputError(f'{place(k)}: "{field}": expected a number or a text, got {short(value)}')
    return value


def is_empty(value: Any) -> bool:
    """Whether a cell holds nothing: empty text, None, NaN, or pandas' NA and NaT."""
    if value is None or type(value).__name__ == "NAType":
        return True
    if isinstance(value, Decimal):
        return value.is_nan()  # a signalling NaN cannot be compared
    return isinstance(value, str | Real | date) and bool(value == "" or value != value)


def is_missing(value: Any) -> bool:
    """Whether a cell of a column of numbers means a missing number: empty, `n/a`, `?`, ...

    In a column of texts, `NA` is an ordinary value: it may be an id.
    """
    if not isinstance(value, str):
        return value != value if type(value) in (int, float) else is_empty(value)
    text = value.strip()
    return text.lower() in _MISSING or _SHEET_ERROR.fullmatch(text) is not None


def _listed(texts: Iterable[str]) -> str:
    """Join the first ten texts by commas, with "..." if there are more."""
    names = list(texts)
    return ", ".join([*names[:10], *["..."] * (len(names) > 10)])


def _written(number: float) -> str:
    """Return the shortest text of a number: 53, 0.1, 20240101."""
    return repr(number).removesuffix(".0")


def category_of(value: Any) -> str | None:
    """Return a cell as the text of a category: `1` for 1, 1.0 and "1.0".

    Return an empty text for an empty cell, and None for a value that is no number and no text.
    """
    if is_empty(value):
        return ""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, str | Real | Decimal):
        return None
    whole = _WHOLE.fullmatch(str(value))
    return whole[1] if whole else str(value)


def _boolean_of(value: Any) -> Any:
    """Return the boolean that a text means, and any other value unchanged.

    A column of booleans is a number, but its values are texts in a .csv file.
    """
    return _BOOLEANS.get(value.strip().lower(), value) if isinstance(value, str) else value


def _text_of(value: Any, texts: Container[str]) -> str | None:
    """Return the category that a cell means; None if it cannot be a category.

    If a column had 10, 12.5 and XL in training, its values were read as texts. A later table
    without XL has numbers in this column. The number 10 then means the category "10". The values of
    a column of booleans in a .csv file are texts as well, such as "TRUE".
    """
    if type(value) is str and value in texts:  # a fast path for the usual case
        return value
    category = category_of(value)
    if not category:
        return category
    is_boolean, forms = isinstance(value, bool | np.bool_), [str(value), category]
    if is_boolean:
        forms += [category.lower(), category.upper()]
    text = next((text for text in forms if text in texts), None)
    return str(value) if text is None and not is_boolean else text


# Tables

ALTERNATIVE = "alternative"  # the field with the name of an alternative of a wide table
_TRUE, _FALSE = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")


def interaction(name: str, alternative: str) -> str:
    """The name of the field that an alternative gets from a field of the whole set."""
    return f"{name} of {alternative}"


@dataclass(frozen=True)
class Layout:
    """How the rows of a table hold sets of elements.

    A model keeps the layout of the table that it was trained on, so that it reads other tables in
    the same way. The text of a layout, which `parse` reads, is JSON.

    Args:
        alternatives: the names of the alternatives of a wide table; empty for a long table.
        fields: pairs of a field and its columns in a wide table, one for each alternative. The
            column is empty if the alternative has no such field.
        available: the columns that say whether an element can be chosen. A wide table has one for
            each alternative, or an empty text if it is always available. A long table has one.
        outside: the name of the answer "none of these"; empty if one element is always chosen.
        shared: the columns of a long table that have one value in each set. An outside option has
            them, too.
        answers: the columns of a wide table that have the answers: one with the names or numbers of
            chosen alternatives, or one for each alternative.
        interact: the fields of the whole set that each alternative also has as a field of its own.
        named: pairs of a setting of `ptrnet.data.columns` and its column. The column of answers is
            that of the long table that the wide one becomes.
    """

    alternatives: tuple[str, ...] = ()
    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    available: tuple[str, ...] = ()
    outside: str = ""
    shared: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    interact: tuple[str, ...] = ()
    named: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: Any) -> Self:
        """Return the layout that `str` wrote. Raises InputError for any other value."""
        try:
            values = json.loads(text) if text else {}
            return cls(**{key: _frozen(value) for key, value in values.items()})
        except (TypeError, ValueError, AttributeError):
            raise InputError(f"layout: expected the layout of a table, got {short(text)}") from None

    def __str__(self) -> str:
        values = {key: value for key, value in asdict(self).items() if value}
        return json.dumps(values, ensure_ascii=False) if values else ""

    def __bool__(self) -> bool:
        return self != Layout()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the alternatives of a wide table, the outside option last."""
        return (*self.alternatives, *[self.outside] * bool(self.outside))

    @property
    def outside_mark(self) -> tuple[str, str | int]:
        """The field that marks the outside option among elements, and its value there."""
        return (ALTERNATIVE, self.outside) if self.alternatives else (self.outside, 1)

    @property
    def own_columns(self) -> set[str]:
        """The columns of a wide table that are not fields of the whole set."""
        columns = {column for _, columns in self.fields for column in columns}
        return columns | {*self.available} | {*self.answers}

    def is_wide(self, names: Any) -> bool:
        """Whether a table with these columns is wide. The elements of a set name alternatives."""
        return bool(self.alternatives) and ALTERNATIVE not in names

    def names_in(self, elements: Sequence[Mapping[str, Any]] | None) -> list[str] | None:
        """Return the name of each element of a set; None if the sets are not of a wide table."""
        if not self.alternatives or elements is None:
            return None
        return [str(element[ALTERNATIVE]) for element in elements]

    def stacked(self, columns: Mapping[str, Sequence[Any]], source: str) -> dict[str, list[Any]]:
        """Return the columns of a wide table as those of a long one, with a row for each name.

        All alternatives of the first row come first. `source` is the name of the table in errors.

        Raises:
            InputError: the table lacks a column, or two columns would have the same name.
        """
        self._check_columns(columns, source)
        size, names = len(next(iter(columns.values()))), self.names
        long: dict[str, list[Any]] = {ALTERNATIVE: [*names] * size}
        for field, of_names in self.fields:
            parts = [columns[c] if c else [None] * size for c in of_names]
            parts += [[None] * size] * (len(names) - len(parts))
            long[field] = [cell for row in zip(*parts, strict=True) for cell in row]
        for name, cells in columns.items():
            if name not in self.own_columns:
                long[name] = [cell for cell in cells for _ in names]
        for name in self.interact:
            for own in names[1:]:
                rows = zip(long[name], long[ALTERNATIVE], strict=True)
                long[interaction(name, own)] = [cell if each == own else 0 for cell, each in rows]
        return long

    def _check_columns(self, columns: Mapping[str, Any], source: str) -> None:
        needed = [column for _, of_names in self.fields for column in of_names if column]
        needed += [*filter(None, self.available), *self.interact]
        lacking = [column for column in needed if column not in columns]
        if lacking:
            raise InputError(
                f"{source}: expected the column{'s' * (len(lacking) > 1)} "
                f"{short(', '.join(lacking), 200)}, got {short(', '.join(map(str, columns)))}"
            )
        for field in (ALTERNATIVE, *(field for field, _ in self.fields)):
            if field in columns and field not in self.own_columns:
                raise InputError(
                    f'{source}: the column "{field}" would be a field of the whole set, but '
                    f"{'the name' if field == ALTERNATIVE else 'a field'} of each alternative is "
                    f'called "{field}"; rename the column'
                )

    def can_be_chosen(
        self, columns: Mapping[str, Sequence[Any]], place: Place
    ) -> NDArray[np.bool_]:
        """Return `(rows, names)`: whether each alternative of a wide table is available.

        Raises:
            InputError: a cell is neither 1 nor 0, or a row has no alternative. `place` returns the
                name of a row.
        """
        size = len(next(iter(columns.values())))
        can = np.ones((size, len(self.names)), bool)
        for k, column in enumerate(self.available):
            if column:
                can[:, k] = flags_of(columns[column], column, place)
        if not can.any(1).all():
            raise InputError(f"{place(int(can.any(1).argmin()))}: no alternative is available")
        return can

    def elements(self, row: Mapping[str, Any], source: str) -> list[dict[str, Any]]:
        """Return the available elements of one row of a wide table, such as one of a request."""
        columns = {name: [cell] for name, cell in row.items()}
        long = self.stacked(columns, source)
        can = self.can_be_chosen(columns, lambda _: source)[0]
        rows = zip(*long.values(), strict=True)
        return [dict(zip(long, values, strict=True)) for values in compress(rows, can)]


NO_LAYOUT = Layout()  # the rows of tables hold elements, and their reader needs columns' names


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def flags_of(cells: Sequence[Any], name: str, place: Place) -> NDArray[np.bool_]:
    """Return whether each cell of a column is 1. An empty cell is 0.

    Raises InputError for other cells. `place` returns the name of cell k.
    """
    texts = ["" if is_empty(value) else str(value).strip().lower() for value in cells]
    for k, text in enumerate(texts):
        if text not in (*_TRUE, *_FALSE):
            raise InputError(f'{place(k)}: "{name}": expected 1 or 0, got {short(cells[k])}')
    return np.array([text in _TRUE for text in texts], bool)
