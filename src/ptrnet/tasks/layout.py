"""How the rows of a table hold sets of elements: the part of a task that readers of tables need.

In a long table, each row is an element. In a wide table, each row is a set, and the fields of each
alternative are in columns of their own, such as `train_cost` and `car_cost`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, short
from ptrnet.tasks.schema import is_empty

ALTERNATIVE = "alternative"  # the field with the name of an alternative of a wide table
_TRUE, _FALSE = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")


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
                of_rows = zip(long[name], long[ALTERNATIVE], strict=True)
                long[f"{name} of {own}"] = [cell if each == own else 0 for cell, each in of_rows]
        return long

    def _check_columns(self, columns: Mapping[str, Any], source: str) -> None:
        needed = [column for _, of_names in self.fields for column in of_names if column]
        needed += [*filter(None, self.available), *self.interact]
        lacking = [column for column in needed if column not in columns]
        if lacking:
            raise InputError(
                f'{source}: expected the column{"s" * (len(lacking) > 1)} "'
                f'{short(", ".join(lacking), 200)}", got {short(", ".join(map(str, columns)))}'
            )
        for field in (ALTERNATIVE, *(field for field, _ in self.fields)):
            if field in columns and field not in self.own_columns:
                raise InputError(
                    f'{source}: the column "{field}" would be a field of the whole set, but '
                    f"{'the name' if field == ALTERNATIVE else 'a field'} of each alternative is "
                    f'called "{field}"; rename the column'
                )

    def can_be_chosen(self, columns: Mapping[str, Sequence[Any]], place: Any) -> NDArray[np.bool_]:
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


def flags_of(cells: Sequence[Any], name: str, place: Any) -> NDArray[np.bool_]:
    """Return whether each cell of a column is 1. An empty cell is 0.

    Raises InputError for other cells. `place` returns the name of cell k.
    """
    texts = ["" if is_empty(value) else str(value).strip().lower() for value in cells]
    for k, text in enumerate(texts):
        if text not in (*_TRUE, *_FALSE):
            raise InputError(f'{place(k)}: "{name}": expected 1 or 0, got {short(cells[k])}')
    return np.array([text in _TRUE for text in texts], bool)
