"""Long tables: each row is an element, and one column says to which set (instance) a row belongs.

A `Table` has the columns of a file or a frame, as they were read. The functions of this module make
a `Dataset` of it, with a row for each set. The rows of a set need not be next to each other in the
table; the dataset's column `rows` says where they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ptrnet.data import cells, checks
from ptrnet.data.arrays import checksum_of, columns_of, is_frame, split
from ptrnet.data.columns import ANSWERS, WIDE_TABLES, Columns
from ptrnet.data.groups import GROUP_KEY, code_of
from ptrnet.data.infer_schema import (
    AS_IT_IS,
    MAX_CATEGORIES,
    WRITE_NUMBERS,
    Field,
    Reading,
    check_names,
    check_read,
    schema_of,
)
from ptrnet.errors import InputError, listed, short, warn_ambiguous
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import Kind
from ptrnet.tasks.schema import (
    NO_LAYOUT,
    Layout,
    Numbers,
    Place,
    Schema,
    flags_of,
    is_empty,
    is_missing,
    to_numbers,
)
from ptrnet.types import Dataset, Example, Floats, Indices, ranking


@dataclass(frozen=True, eq=False)
class Table:
    """A long table: columns of cells."""

    # The cells of each column, by its name. All columns have the same length.
    columns: Mapping[str, Sequence[Any]]
    source: str  # the name of the table in error messages
    place: Place  # returns the name of row k in error messages, such as `sets.csv:12`
    # Whether all cells are texts that still have to be parsed, as in a .csv file.
    is_text: bool = False
    # The value of a field that has no column; None refuses a missing column.
    default: float | None = None
    # The `pyarrow.Table` that the columns were read from, or None. A .parquet file that we write
    # again gets the types of its columns from this table.
    arrow: Any = None
    # The table that this one was made from, or None; see `ptrnet.data.reshape`.
    origin: "Origin | None" = None
    _parsed: dict[str, Sequence[Any]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, values: Any) -> Self:
        """Make a table from a frame or from a list of dictionaries."""
        if is_frame(values):
            columns = columns_of(values)
        else:
            rows = split(values, "table")
            for k, row in enumerate(rows):
                if not isinstance(row, Mapping):
                    got = type(row).__name__
                    raise InputError(f"row {k}: expected a dictionary of columns, got {got}")
            names = dict.fromkeys(name for row in rows for name in row)
            columns = {name: [row.get(name) for row in rows] for name in names}
        table = cls(columns, "table", "row {}".format)
        if not len(table):
            raise InputError("table: expected at least one row, got none")
        return table

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def layout(self) -> Layout:
        """How the rows of the original table hold sets; empty if they are elements as they are."""
        return self.origin.layout if self.origin else NO_LAYOUT

    def take(self, rows: Indices) -> "Table":
        """Return the table with its rows in another order."""
        places = rows.tolist()
        columns = {
            name: Numbers(c.array[rows]) if isinstance(c, Numbers) else [c[k] for k in places]
            for name, c in self.columns.items()
        }
        return replace(self, columns=columns, place=lambda k: self.place(places[k]), arrow=None)

    def cells(self, name: str) -> Sequence[Any]:
        """Return a column, unparsed. Raises InputError if the table has no such column."""
        if name not in self.columns:
            names = short(", ".join(map(str, self.columns)))
            raise InputError(f'{self.source}: expected the column "{name}", got {names}')
        return self.columns[name]

    def values(self, name: str) -> Sequence[Any]:
        """Return a column. If `is_text`, its cells are parsed by `cells.parse_column`."""
        if name not in self.columns and self.default is not None:
            return np.full(len(self), self.default).tolist()
        column = self.cells(name)
        if not self.is_text:
            return column
        if name not in self._parsed:
            self._parsed[name] = cells.parse_column(column)
        return self._parsed[name]

    def encode(self, schema: Schema) -> Floats:
        """Return the features of each row, `(n, d)`.

        In a field with categories, cells are not parsed, so `10` remains a text. In a numeric
        field, a text that is not a number stays unchanged. `encode_field` then refuses this text
        and names the row.
        """
        parts = []
        for k, (name, categories) in enumerate(zip(schema.fields, schema.categories, strict=True)):
            if self.is_text and name in self.columns:
                values = self.columns[name]
                values = values if categories else cells.parse_cells(values)
            else:
                values = self.values(name)
            parts.append(schema.encode_field(k, values, self.place))
        return np.hstack(parts)

    def elements(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return each row as a dictionary of the named columns."""
        if not names:
            return [{} for _ in range(len(self))]
        rows = zip(*map(self.values, names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]


class Origin(NamedTuple):
    """The table from which a long table was made."""

    table: Table
    layout: Layout  # how its rows hold sets
    # `(n,)`, for each row of the long table its row in a long original, or row * K + k for
    # alternative k of K in a wide one. -1: the row of an outside option in no row.
    slots: Indices
    # `(n,)`, the position of each row among all rows of its set in the original, or the
    # alternative.
    positions: Indices


def read_sets(table: Table, columns: Columns) -> Dataset:
    """Return the sets of a table, in the order of their first rows. No schema encodes the elements.

    Args:
        columns: the names of its columns. `extra` has the id of a set under the name of its column.

    Raises:
        InputError: a column is missing, or a cell cannot be used.

    Examples:
        >>> rows = [{"trip": 7, "price": 3.5, "bought": 0}, {"trip": 7, "price": 2.0, "bought": 1}]
        >>> sets = read_sets(Table.of(rows), Columns(set_id="trip", chosen="bought"))
        >>> sets[0].extra, sets[0].elements, sets[0].outputs.tolist()
        ({'trip': 7}, [{'price': 3.5}, {'price': 2.0}], [1])
    """
    table, data = _sets(table, columns)
    return _with_elements(data, table, columns)


def sets_for_task(table: Table, columns: Columns, task: Task, with_answers: bool = True) -> Dataset:
    """As `read_sets`, but encode the elements for an existing task, and check the answers.

    If the task has a schema, only the schema's fields are encoded. Answers are read if
    `with_answers` is true and the table has a column of answers.

    Raises:
        InputError: as for `read_sets`, or an answer breaks the rules of the task.
    """
    table, sets = _sets(table, columns, with_answers)
    sets = _with_elements(sets, table, columns)
    if task.facts.schema is None:
        parts = [checks.check_instance(row.elements, task, row.source) for row in sets]
        features = np.concatenate(parts)
    else:
        features = table.encode(task.facts.schema)
    data = _encoded(sets, features, task.facts.min_elements)
    for row in data:
        complaint = row.outputs is not None and task.answer_error(len(row.inputs), row.outputs)
        if complaint:
            raise InputError(f"{row.source}: answer: {complaint}")
    checks.check_feasible(data, task)
    return data


def infer_sets(
    table: Table, columns: Columns, reading: Reading = AS_IT_IS
) -> tuple[Schema, Dataset]:
    """Infer the schema of the elements. Return the schema, and the sets encoded by the schema.

    By default, the model reads all fields except the group's id, and those that are named like ids
    (`cells.is_id`), or have more than MAX_CATEGORIES different texts. It also reads those that are
    named like ids if the user named them as categories. The reading's group and context are not
    used. Raises InputError if a column is missing, a cell cannot be used, or the model does not
    read one of `categories`.
    """
    table, sets = _sets(table, columns)
    source, known = table.source, field_names(table, columns)
    fields, categories = reading.fields, reading.categories
    position = getattr(columns, "position", "")
    names = list(fields) or [
        name
        for name in known
        if name in categories or (not cells.is_id(name) and name != columns.group)
    ]
    if position:  # the last field, so that the marks of positions are the last features
        names = [*(name for name in names if name != position), position]
    check_names(names, source)
    check_read("categories", categories, names)
    codes = np.repeat(np.arange(len(sets)), sets.sizes)
    seen, of_texts, of_names = [], [], []
    for name in names:
        if name not in known and table.default is None:
            raise InputError(
                f'{source}: expected the column "{name}" to be a field, got '
                f"{short(', '.join(known))}"
            )
        summary = Field(name, name in categories or name == position)
        is_raw = summary.is_category and name in table.columns  # as in `Table.encode`
        values = table.columns[name] if is_raw else table.values(name)
        summary.add(values, codes, table.place)
        if name == position and (summary.missing or len(summary.texts) < 2):
            got = "none" if summary.missing else "one in all rows"
            where = summary.missing or source
            raise InputError(f'{where}: "{name}": expected the position of an element, got {got}')
        if not (summary.is_number or summary.is_category):
            of_texts.append(name)
        if fields or summary.is_category or not summary.is_like_names:
            seen.append(summary)
        else:
            of_names.append(summary)
    _warn_of_typos(table, of_texts)
    _warn_of_names(of_names)
    if not seen:
        raise InputError(f"{source}: expected a field to learn from, got none")
    schema = schema_of(seen, reading)
    return schema, _encoded(sets, table.encode(schema))


def field_names(table: Table, columns: Columns) -> list[str]:
    """Return the columns that are fields: neither ids of sets, nor answers, nor weights."""
    keys = {columns.set_id, columns.answer[1], getattr(columns, "weight", "")}
    return [name for name in table.columns if name not in keys]


def kind_of_sets(table: Table, columns: Columns, data: Dataset) -> Kind:
    """Return the kind of the answers, which follows from the setting that names their column.

    For a column of ranks, the kind also depends on whether ranks have ties or are missing.
    """
    role, name = columns.answer
    kinds: dict[str, Kind] = {"chosen": "choice", "member": "set", "grade": "grades"}
    if role in kinds:
        return kinds[role]
    if data.grades is not None:
        return "grades"
    return "subset" if any(map(is_missing, table.cells(name))) else "permutation"


def _sets(table: Table, columns: Columns, with_answers: bool = True) -> tuple[Table, Dataset]:
    """Return the table with the rows of each set together, and the sets, without elements."""
    keys, codes = _keys_of(table, columns.set_id)
    rows: Indices = np.argsort(codes, kind="stable")
    starts: Indices = np.concatenate([[0], np.bincount(codes).cumsum()])
    if (np.diff(rows) < 0).any():
        table = table.take(rows)
    sources = [f"{columns.set_id} {short(key)}" for key in keys]
    values: dict[str, Sequence[Any]] = {
        "source": sources,
        "extra": [{columns.set_id: key} for key in keys],
        "rows": _split(rows.tolist(), starts),
    }
    if weight := getattr(columns, "weight", ""):
        values["weight"] = _weights(table, weight, starts, sources)
    if columns.group:
        groups = _groups(table, columns.group, starts, sources)
        values["group"] = [code_of(group) for group in groups]
    data = Dataset(np.zeros((len(rows), 0)), starts, columns=values)
    if with_answers and columns.answer[0]:
        answers, grades = _answers(table, columns, data)
        data = replace(data.with_answers(answers), grades=grades)
    return table, data


def _keys_of(table: Table, name: str) -> tuple[list[Any], Indices]:
    """Return the different ids in the order of their first rows, and the number of each row's id.

    Raises InputError if a cell cannot be an id.
    """
    ids, firsts = table.cells(name), dict[Any, int]()
    if isinstance(ids, Numbers):
        _, first, numbers = np.unique(ids.array, return_index=True, return_inverse=True)
        order = np.argsort(first)
        keys = [cells.check_id(ids[k], f'{table.place(k)}: "{name}"') for k in first[order]]
        return keys, np.argsort(order)[numbers]
    found = []
    for k, value in enumerate(ids):
        number = firsts.get(value) if type(value) in (int, str) else None
        if number is None:  # the first row of a set; checks take longer than all else here
            key = cells.check_id(value, f'{table.place(k)}: "{name}"')
            number = firsts.setdefault(key, len(firsts))
        found.append(number)
    return list(firsts), np.array(found)


def _with_elements(data: Dataset, table: Table, columns: Columns) -> Dataset:
    elements = table.elements(field_names(table, columns))
    return data.with_columns(elements=_split(elements, data.starts))


def _split(values: Any, starts: Indices) -> list[Any]:
    """Split values of the elements into one part for each set."""
    return [values[a:b] for a, b in pairwise(starts.tolist())]


def _encoded(data: Dataset, features: Floats, least: int = 1) -> Dataset:
    """Return the sets with these features, `(number of rows, d)`.

    A training reads its table by `infer_sets`, and a resumed training by `sets_for_task`. The two
    must pass equal features: their checksum is the fingerprint, and a training is only resumed if
    the fingerprint is the same.
    """
    for source, size in zip(data.column("source"), data.sizes.tolist(), strict=True):
        checks.check_size(size, least, source)
    data = replace(data, elements=features)
    if data.answers is None:
        return data
    parts = [features, data.starts, data.answers, data.grades, data.weights, data.groups]
    return replace(data, fingerprint=checksum_of(part for part in parts if part is not None))


def _warn_of_typos(table: Table, names: Sequence[str]) -> None:
    """Warn of columns of texts with more numbers than texts: their first texts may be typos.

    Only files of text have such columns. In other tables, numbers next to texts are refused.
    """
    typos = {}
    for name in names:
        if not table.is_text or name not in table.columns:
            continue
        parsed = cells.parse_cells(table.cells(name))
        texts = [k for k, value in enumerate(parsed) if isinstance(value, str)]
        if sum(isinstance(value, int | float) for value in parsed) > len(texts) > 0:
            place, text = table.place(texts[0]), short(parsed[texts[0]])
            typos[name] = f'{place}: "{name}": expected a number, as in most rows, got {text}'
    if typos:
        advice = "because of this cell, the column is read as texts"
        if len(typos) > 1:
            columns = listed(f'"{name}"' for name in typos)
            advice = f"because of such cells, {len(typos)} columns are read as texts: {columns}"
        first = next(iter(typos.values()))
        warn_ambiguous(f"{first}; {advice}")


def _warn_of_names(fields: Sequence[Field]) -> None:
    """Warn of fields that the model does not read, because they have too many different texts."""
    if not fields:
        return
    first, *rest = sorted(fields, key=lambda field: not field.has_foreign_numbers)
    names = listed(f'"{field.name}"' for field in (first, *rest))
    warn_ambiguous(
        f"{names}: more than {MAX_CATEGORIES} different texts, such as {short(first.example)}, so "
        f"the model does not read {'these fields' if rest else 'the field'}"
        + f"; {WRITE_NUMBERS}"
        * first.has_foreign_numbers
    )


# The functions below take a table whose rows are sorted: those of set k are from `starts[k]` on.


def _groups(table: Table, name: str, starts: Indices, sources: Sequence[str]) -> list[Any]:
    """Return the group of each set. Raises InputError if the rows of a set have several groups."""
    groups: list[Any] = []
    column = table.cells(name)
    for source, (first, last) in zip(sources, pairwise(starts.tolist()), strict=True):
        for k in range(first, last):
            place = f'{table.place(k)}: "{name}"'
            group = cells.check_id(column[k], place)
            if k == first:
                groups.append(group)
            elif group != groups[-1]:
                raise InputError(
                    f"{place}: expected one group in all rows of {source}, got "
                    f"{short(groups[-1])} and {short(group)}"
                )
    return groups


def _weights(table: Table, name: str, starts: Indices, sources: Sequence[str]) -> list[float]:
    """Return the weight of each set. Raises InputError if the rows of a set have several."""
    column = table.values(name)
    numbers = to_numbers(column, name, table.place)
    sizes = np.diff(starts)
    weights = numbers[starts[:-1]]
    differs = numbers != np.repeat(weights, sizes)  # NaN differs from itself
    if differs.any():
        k = int(differs.argmax())
        source = sources[np.repeat(np.arange(len(sizes)), sizes)[k]]
        raise InputError(
            f'{table.place(k)}: "{name}": expected the weight of {source}, the same number in all '
            f"of its rows, got {short(column[k])}"
        )
    return checks.check_weights(weights, sources, f'"{name}"').tolist()


def _answers(table: Table, columns: Columns, data: Dataset) -> tuple[list[Indices], Floats | None]:
    """Return the answer of each set, and the grades of all elements.

    If the column holds neither grades nor ranks with ties, the second value is None.
    """
    role, name = columns.answer
    column = table.cells(name)
    if role in ("chosen", "member"):
        flags = _split(_flags(table, name, role), data.starts)
        indices: list[Indices] = [np.flatnonzero(part) for part in flags]
        for k, chosen in enumerate(indices if role == "chosen" else ()):
            if len(chosen) != 1:
                advice = "use --member if sets have several"
                if not len(chosen):
                    advice = "if none of them is an answer, name it, such as --outside none"
                raise InputError(
                    f'{table.place(int(data.starts[k]))}: "{name}": expected one chosen row of '
                    f"{data[k].source}, got {len(chosen)}; {advice}"
                )
        return indices, None
    if role == "grade":
        values = cells.parse_column(table.values(name))  # categorical grades are texts
        grades = to_numbers(values, name, table.place)
        if np.isnan(grades).any():
            place = table.place(int(np.isnan(grades).argmax()))
            raise InputError(f'{place}: "{name}": expected a grade, got none')
    else:
        ranks = [_rank(v, f'{table.place(k)}: "{name}"') for k, v in enumerate(column)]
        parts = [_grades_of_ranks(part) for part in _split(ranks, data.starts)]
        positive = [part[part > 0] for part in parts]
        if all(len(np.unique(part)) == len(part) for part in positive):  # no ties
            return [ranking(part)[: np.count_nonzero(part)] for part in parts], None
        grades = np.concatenate(parts)
    return [ranking(part) for part in _split(grades, data.starts)], grades


def _flags(table: Table, name: str, role: str) -> NDArray[np.bool_]:
    column = table.cells(name)
    try:
        return flags_of(column, name, table.place)
    except InputError as error:
        # Numbers of alternatives, or a name in each row. Other texts may be typing errors.
        texts = {str(value).strip().removesuffix(".0") for value in column if not is_empty(value)}
        is_wide = all(map(str.isdecimal, texts)) or not any(map(str.isdecimal, texts))
        raise InputError(f"{error}" + _WIDE_ADVICE * (role == "chosen" and is_wide)) from None


def with_keys(table: Table, columns: Columns, data: Dataset) -> Dataset:
    """Return sets as lines of JSON have them: the group's id is in `extra`, not in the elements."""
    if not columns.group:
        return data
    groups, extras, elements = table.cells(columns.group), [], []
    for row in data:
        group = groups[(row.rows or ())[0]]
        extras.append({**row.extra, GROUP_KEY: cells.check_id(group, row.source)})
        rest = ({n: v for n, v in e.items() if n != columns.group} for e in row.elements or ())
        elements.append(list(rest))
    return data.with_columns(extra=extras, elements=elements)


# Writing


def answered(
    table: Table,
    columns: Columns,
    data: Dataset,
    kind: str,
    probability: str = "",
    probabilities: Sequence[Floats] | None = None,
) -> Table:
    """Return the table as it was read, with columns for the answers in `data`.

    A long table gets a column of answers (see `answer_cells`), whose name is that of the setting
    `chosen`, `member` or `rank`. A wide table gets a column with the names of the chosen
    alternatives; if answers are not choices, it gets a column of answers for each alternative.

    Args:
        table: the table from which `data` was made.
        probability: the name of the column of probabilities, or its beginning; see `new_columns`.
        probabilities: for each set the probabilities `(n,)` of its elements, or None.

    Raises:
        InputError: an element is in an answer twice, or the table already has a column with the
            name of a new column.
    """
    names, of_p = new_columns(table, columns, kind, probability)
    role = _ROLES.get(kind, "rank")
    parts = [
        answer_cells(role, row.outputs, len(row.inputs), row.source)
        for row in data
        if row.outputs is not None
    ]
    layout, added = table.layout, list[list[Any]]()
    if layout.alternatives and kind == "choice":
        added.append([layout.names[int(k)] for (k,) in positions_of(table, data)])
    else:
        added += _in_original(table, in_rows(data, parts), 0 if role in _ROLES.values() else None)
    if probabilities is not None:
        column = in_rows(data, (p.tolist() for p in probabilities))
        added += _in_original(table, column, 0.0)
        if len(of_p) > 1 and not layout.alternatives:
            added.append(_of_outside(table, columns, data, column))
    original = table.origin.table if table.origin else table
    new = dict(zip([*names, *of_p], added, strict=False))
    return replace(original, columns={**original.columns, **new})


def in_rows(data: Dataset, values: Iterable[Iterable[Any]]) -> list[Any]:
    """Return the values of each set's elements in the order of the table's rows."""
    column: list[Any] = [None] * len(data.elements)
    for rows, of_set in zip(data.column("rows"), values, strict=True):
        for row, value in zip(rows, of_set, strict=True):
            column[row] = value
    return column


def in_original_rows(table: Table, data: Dataset, values: Sequence[Floats], missing: float) -> Any:
    """Return the values of all elements as an array for the rows of the table as it was read.

    Elements that cannot be chosen have the value `missing`. The outside option of a long table has
    no row, so its value is left out. The array is `(rows,)`. For a wide table, return a dictionary
    with such an array for each alternative.
    """
    parts = [np.array(part) for part in _in_original(table, in_rows(data, values), missing)]
    return dict(zip(table.layout.names, parts, strict=True)) if _is_wide(table) else parts[0]


def answers_in_rows(table: Table, data: Dataset, kind: str) -> Any:
    """Return the answers in `data` as numbers for the rows of the table as it was read.

    Choices and members are 1, and other elements 0. In orders, an element has its place, from 1, or
    NaN if it has none. For a wide table of choices, return the names of the chosen alternatives.
    Raises InputError if an element is in an answer twice.
    """
    if _is_wide(table) and kind == "choice":
        return np.array([table.layout.names[int(k)] for (k,) in positions_of(table, data)])
    role = _ROLES.get(kind, "rank")
    parts = [
        np.array(answer_cells(role, outputs, n, source), np.float64)
        for outputs, n, source in zip(
            data.all_outputs(), data.sizes.tolist(), data.column("source"), strict=True
        )
    ]
    columns = in_original_rows(table, data, parts, np.nan if role == "rank" else 0)
    return {k: _whole(c) for k, c in columns.items()} if _is_wide(table) else _whole(columns)


def _whole(numbers: Floats) -> NDArray[Any]:
    return numbers if np.isnan(numbers).any() else numbers.astype(np.int64)


def positions_of(table: Table, data: Dataset) -> list[Indices]:
    """Return each answer as positions among all rows of its set in the table as it was read.

    An answer "none of these" is empty. In a wide table, positions are those of alternatives.
    """
    answers = data.all_outputs()
    if table.origin is None:
        return answers
    found = []
    for rows, outputs in zip(data.column("rows"), answers, strict=True):
        positions = table.origin.positions[np.array(rows, np.int64)[outputs]]
        found.append(positions[positions >= 0])
    return found


def _is_wide(table: Table) -> bool:
    return bool(table.layout.alternatives)


def _in_original(table: Table, column: list[Any], missing: Any) -> list[list[Any]]:
    """Return the cells of a long table's rows as columns of the table as it was read.

    The result has a single column or, for a wide table, one for each alternative.
    """
    if table.origin is None:
        return [column]
    width = len(table.layout.names) if _is_wide(table) else 1
    slots = [missing] * (len(table.origin.table) * width)
    for slot, value in zip(table.origin.slots.tolist(), column, strict=True):
        if slot >= 0:
            slots[slot] = value
    return [slots[k::width] for k in range(width)]


def _of_outside(table: Table, columns: Columns, data: Dataset, column: list[Any]) -> list[Any]:
    """Return the value of the outside option of its set for each row of the original long table."""
    assert table.origin is not None
    of_sets = {}
    for rows, extra in zip(data.column("rows"), data.column("extra"), strict=True):
        of_sets[extra[columns.set_id]] = column[max(rows)]  # outside options are the last rows
    return [of_sets[key] for key in table.origin.table.cells(columns.set_id)]


def new_columns(
    table: Table, columns: Columns, kind: str, probability: str
) -> tuple[list[str], list[str]]:
    """Return the names of the columns of answers and of probabilities that `answered` adds.

    A wide table has a column of probabilities for each alternative, such as `probability_car`, or
    `p_car` if `probability` is "p". A long table has one column if `probability` is not empty, and
    another one if there is an outside option. Raises InputError if the table already has a column
    of such a name.
    """
    role, layout = _ROLES.get(kind, "rank"), table.layout
    given, name = columns.answer
    if given != role:
        name = "place" if role == "rank" else role
    names, of_p = [name], [probability] * bool(probability)
    if layout.alternatives:
        names = names if kind == "choice" else [f"{name}_{each}" for each in layout.names]
        of_p = [f"{probability or 'probability'}_{each}" for each in layout.names]
    elif probability and layout.outside:
        of_p.append(f"{probability}_{layout.outside}")
    known = {*(table.origin.table if table.origin else table).columns}
    advice = f"name another column for the answers (--{role})"
    of_names = "rename it" if layout.alternatives else advice
    of_probabilities = "name another column for the probabilities (--probability)"
    for new in (*names, *of_p):
        if new in known:
            advice = of_probabilities if new in of_p else of_names
            raise InputError(f'{table.source}: has a column "{new}" already; {advice}')
        known.add(new)
    return names, of_p


_WIDE_ADVICE = (
    "; if each row is a set of its own, with columns such as car_cost and bus_cost, leave out "
    f"set_id and name the alternatives, such as --alternatives car,bus; {WIDE_TABLES}"
)
# The setting of `Columns` for a new column of answers, by the kind of the answers. For all other
# kinds, the setting is "rank", because their answers are orders. This is also true for grades: a
# model gives an order, not grades.
_ROLES = {"choice": "chosen", "set": "member"}


def answer_cells(role: str, outputs: Indices, n: int, source: str) -> list[Any]:
    """Return an answer as the cells of a column: a cell for each of n elements.

    Args:
        role: for "chosen" or "member", the cell of an element is 1 if the element is in the answer,
            and 0 otherwise. For "rank", the cell is the element's position in the answer, counted
            from 1, or None if the element is not in the answer.
        source: the name of the answer in error messages.

    Raises:
        InputError: an element is in the answer twice.
    """
    if outputs.ndim != 1 or len({*outputs.tolist()}) != len(outputs):
        raise InputError(f"{source}: a column cannot hold an answer that has an element twice")
    is_flag = role in _ROLES.values()
    column: list[Any] = [0 if is_flag else None] * n
    for place, index in enumerate(outputs.tolist(), 1):
        column[index] = 1 if is_flag else place
    return column


def table_of_examples(examples: Iterable[Example], columns: Columns, source: str) -> Table:
    """Return a long table with a row for each element of the examples.

    The columns are the id, the answer, the other keys of `extra`, and the fields of the elements.
    The values of `extra` are repeated in each row of an instance. Dictionaries in `extra` are left
    out. One such dictionary is `context`, whose fields the elements already have.

    Args:
        examples: examples that have `elements`. The id of an example is in its `extra`, under the
            name `columns.set_id`. If all examples lack the id, and have no other `extra` to write,
            the ids are 1, 2, ...
        columns: the names of the columns of the id, the answer and the group.
        source: the name of the examples in error messages.

    Raises:
        InputError: an id or an answer is missing, two examples have the same id, or an answer has
            an element twice. Or an element has other fields than the first element, or two columns
            would have the same name.
    """
    role, answer = columns.answer
    if not role:
        raise InputError(
            f"{source}: expected the column of the answers ({', '.join(ANSWERS)}), got none"
        )
    rows: list[dict[str, Any]] = []
    has_ids, ids = False, set[str]()
    for number, example in enumerate(examples, 1):
        shared = {k: v for k, v in example.extra.items() if not isinstance(v, Mapping)}
        if columns.group and GROUP_KEY in shared:
            shared[columns.group] = shared.pop(GROUP_KEY)
        key = shared.pop(columns.set_id, None)
        if number == 1:
            has_ids = key is not None
        if has_ids != (key is not None) or (not has_ids and shared):
            raise InputError(
                f'{example.source}: expected the key "{columns.set_id}" with the id of the set'
            )
        if has_ids and str(key) in ids:
            raise InputError(
                f'{example.source}: "{columns.set_id}": expected another id for each set, got '
                f"{short(key)} twice"
            )
        ids.add(str(key))
        elements = example.elements or ()
        if role == "grade" and example.grades is not None:
            answers = example.grades.tolist()
        elif role != "grade" and example.outputs is not None:
            answers = answer_cells(role, example.outputs, len(elements), example.source)
        else:
            raise InputError(f"{example.source}: has no answer for the column {answer}")
        for cell, element in zip(answers, elements, strict=True):
            row = {columns.set_id: key if has_ids else number, answer: cell, **shared, **element}
            names = list(rows[0]) if rows else list(row)
            if set(row) != set(names) or len(row) != 2 + len(shared) + len(element):
                got = short(", ".join(map(str, {**shared, **element})))
                raise InputError(
                    f"{example.source}: expected elements with the fields "
                    f"{', '.join(names[2:])}, got {got}"
                )
            rows.append(row)
    return Table.of(rows)


# Ids and ranks stay exact: in float64, different long numbers may become equal.


def _rank(value: Any, source: str) -> Any:
    """Return a rank as an exact number, or None for a missing rank."""
    value = value.item() if isinstance(value, np.generic) else value
    if is_missing(value):
        return None
    if isinstance(value, str) and cells.is_plain_number(value):
        with suppress(InvalidOperation):  # an exponent of more than 18 digits
            return Decimal(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        advice = "; if the column marks the elements of the answer, use chosen or member"
        raise InputError(
            f"{source}: expected a number or an empty cell, got {short(value)}"
            + advice * isinstance(value, bool)
        )
    cells.check_unrounded(value, source)
    return value


def _grades_of_ranks(ranks: Sequence[Any]) -> Floats:
    """Convert ranks to grades: 1 for the largest rank, more for smaller ranks, 0 if missing."""
    distinct = sorted({rank for rank in ranks if rank is not None}, reverse=True)
    grades = {rank: grade for grade, rank in enumerate(distinct, 1)}
    return np.array([0 if rank is None else grades[rank] for rank in ranks], np.float64)
