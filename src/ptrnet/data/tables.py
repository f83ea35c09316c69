"""Long tables: each row is an element, and one column says to which set (instance) a row belongs.

A `Table` holds columns of cells, read from a file or a frame. `Sets` groups the rows of a table by
set. The rows of a set need not be next to each other. `Sets.for_training` makes a `Dataset` to
train on, and `Sets.dataset` makes a `Dataset` for an existing task.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from ptrnet.data import cells, checks
from ptrnet.data.arrays import columns_of, is_frame, split
from ptrnet.data.dataset import Dataset
from ptrnet.data.groups import KEY, code_of
from ptrnet.data.infer_groups import common_id
from ptrnet.data.infer_schema import Field, check_names, check_read, schema_of
from ptrnet.errors import AmbiguousInputWarning, InputError, listed, short
from ptrnet.files import checksum
from ptrnet.settings import OWN_EXAMPLES, Settings, setting
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import Kind
from ptrnet.tasks.schema import (
    Missing,
    Place,
    Schema,
    is_empty,
    is_missing,
    to_numbers,
)
from ptrnet.types import Example, Floats, Indices, ranking

WIDE_TABLES = "see docs/own-examples.md#wide-tables"
_TRUE, _FALSE = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")
ANSWERS = ("chosen", "rank", "grade", "member")


@dataclass(frozen=True)
class SetColumns(Settings):
    """The names of the columns that hold the ids of sets and the answers.

    All other columns are fields.

    Name at most one of the columns `chosen`, `rank`, `grade` and `member`.

    Args:
        set_id: all rows of a set have the same value in this column. Empty if the data is not a
            long table.
        chosen: 1 in the row that was chosen, 0 in the other rows of its set.
        rank: the element's rank, any number. The lowest rank comes first, and equal ranks are ties.
            The cell of an element that is not in the answer is empty.
        grade: the element's grade, a number. The highest grade comes first.
        member: 1 if the element belongs to the answer, 0 if not. The answer has no order.
    """

    owner: ClassVar[str] = OWN_EXAMPLES

    set_id: str = setting("", "long table: the column whose value the rows of a set share")
    chosen: str = setting(
        "",
        "long table: the column that is 1 in the chosen row of each set; for `solve`, the name of "
        "the column to write",
    )
    rank: str = setting(
        "",
        "long table: the column with an element's rank, the lowest first; may have ties; for "
        "`solve`, the name of the column to write",
    )
    grade: str = setting("", "long table: the column with an element's grade, the highest first")
    member: str = setting(
        "", "long table: the column that is 1 for members of the answer, a set without order"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [name for name in ANSWERS if getattr(self, name)]
        if len(given) > 1:
            raise InputError(f"expected one of {', '.join(ANSWERS)}, got {' and '.join(given)}")
        if given and not self.set_id:
            raise InputError(
                f"{given[0]}: needs set_id, the column that says which rows are a set (if each row "
                f"is a set of its own: {WIDE_TABLES})"
            )

    def __bool__(self) -> bool:
        return bool(self.set_id)

    def check_keys(self) -> None:
        """Raise InputError if lines of JSON cannot hold the ids of sets under their name."""
        if self.set_id == KEY:
            raise InputError(
                f'set_id: the key "{KEY}" is reserved in a line, for the id of a group of sets; '
                "rename the column of the table"
            )

    @property
    def answer(self) -> tuple[str, str]:
        """The setting for the column of answers, such as "rank", and the name of that column.

        If the user named no column of answers, both texts are empty.
        """
        return next(((n, getattr(self, n)) for n in ANSWERS if getattr(self, n)), ("", ""))


@dataclass(frozen=True)
class Columns(SetColumns):
    """The names of the columns that hold the ids of sets, the answers and the groups.

    Args: those of `SetColumns`, and
        group: the group to which a set belongs, such as a person; see `ptrnet.data.groups`. All
            rows of a set have the same value in this column. If the data is not a long table, this
            is a key of each line, or a field whose value all elements share.
    """

    group: str = setting(
        "",
        "the column (or the key of lines) that says to which person, household, document or "
        "session a set belongs: no split separates the sets of one, and intervals take all sets of "
        "one as one observation",
    )


@dataclass(frozen=True)
class TrainingColumns(Columns):
    """The columns of a table to train on.

    Args: those of `Columns`, and
        weight: the weight of the set, the same number in all rows of the set.
    """

    weight: str = setting("", "long table: the column with the weight of a set in the loss")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weight and not self.set_id:
            raise InputError("weight: needs set_id, the column that says which rows are a set")


NO_COLUMNS = TrainingColumns()  # for data that is not a long table


@dataclass(frozen=True, eq=False)
class Table:
    """A long table: columns of cells.

    Args:
        columns: the cells of each column, by its name. All columns have the same length.
        source: the name of the table in error messages.
        place: returns the name of row k in error messages, such as `sets.csv:12`.
        is_text: whether all cells are texts that still have to be parsed, as in a .csv file.
        default: the value of a field that has no column; None refuses a missing column.
        arrow: the `pyarrow.Table` that the columns were read from, or None. A .parquet file that we
            write again gets the types of its columns from this table.
    """

    columns: Mapping[str, Sequence[Any]]
    source: str
    place: Place
    is_text: bool = False
    default: float | None = None
    arrow: Any = None
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


class Sets:
    """The rows of a table, grouped by set. Sets are in the order of their first rows.

    Args:
        table: the table.
        columns: the names of the columns that hold ids and answers.

    Raises:
        InputError: the column of ids is missing, or one of its cells cannot be an id.

    Examples:
        >>> rows = [{"trip": 7, "price": 3.5, "bought": 0}, {"trip": 7, "price": 2.0, "bought": 1}]
        >>> sets = Sets(Table.of(rows), Columns(set_id="trip", chosen="bought"))
        >>> sets.ids, sets.kind, sets.examples()[0].outputs.tolist()
        ([7], 'choice', [1])
    """

    def __init__(self, table: Table, columns: Columns) -> None:
        self.table, self.columns = table, columns
        numbers: dict[Any, int] = {}
        codes = [
            numbers.setdefault(
                cells.check_id(value, f'{table.place(k)}: "{columns.set_id}"'), len(numbers)
            )
            for k, value in enumerate(table.cells(columns.set_id))
        ]
        self.ids = list(numbers)
        self.codes: Indices = np.array(codes)  # the set of each row
        self.rows: Indices = np.argsort(self.codes, kind="stable")  # row numbers, set after set
        self.starts: Indices = np.concatenate([[0], np.bincount(self.codes).cumsum()])
        self.sources = [f"{columns.set_id} {short(key)}" for key in self.ids]
        self.weight = columns.weight if isinstance(columns, TrainingColumns) else ""
        keys = {columns.set_id, columns.answer[1], self.weight}
        self.names = [name for name in table.columns if name not in keys]  # the fields

    def _place(self, k: int) -> str:
        return self.table.place(int(self.rows[k]))

    def _sorted(self, values: Sequence[Any]) -> list[Any]:
        return [values[row] for row in self.rows.tolist()]

    def _split(self, values: Any) -> list[Any]:
        """Split values that are in the order of `self.rows` into one part for each set."""
        return [values[a:b] for a, b in pairwise(self.starts.tolist())]

    def ids_in(self, name: str) -> list[Any] | None:
        """Return the id that a column holds for each set; None if there is a set without one id."""
        column, ids = self.table.cells(name), []
        for rows in self._split(self.rows.tolist()):
            ids.append(common_id([column[row] for row in rows]))
            if ids[-1] is None:
                return None
        return ids

    @cached_property
    def _groups(self) -> list[Any]:
        """The group of each set; an empty list if the user named no column of groups."""
        name = self.columns.group
        if not name:
            return []
        groups: list[Any] = []
        for k, value in enumerate(self._sorted(self.table.cells(name))):
            place, number = f'{self._place(k)}: "{name}"', int(self.codes[self.rows[k]])
            group = cells.check_id(value, place)
            if number == len(groups):
                groups.append(group)
            elif group != groups[number]:
                raise InputError(
                    f"{place}: expected one group in all rows of {self.sources[number]}, got "
                    f"{short(groups[number])} and {short(group)}"
                )
        return groups

    def _elements(self, without: str = "") -> list[list[dict[str, Any]]]:
        """Return the elements of each set as dictionaries, without the field `without`."""
        names = [name for name in self.names if name != without]
        return self._split(self._sorted(self.table.elements(names)))

    def in_rows(self, values: Sequence[Floats]) -> Floats:
        """Convert numbers of each set's elements to one number for each row of the table."""
        column = np.empty(len(self.rows))
        column[self.rows] = np.concatenate(values)
        return column

    def examples(self) -> list[Example]:
        """Return an example for each set. Its `inputs` are the set's elements, as dictionaries.

        The id of the set's group is in `extra`, as in a line of JSON, and not in the elements.
        """
        answers: list[Any] = [None] * len(self.ids)
        grades: list[Any] = [None] * len(self.ids)
        if self.columns.answer[0]:
            answers, flat = self._answers
            grades = grades if flat is None else self._split(flat)
        extras: list[dict[str, Any]] = [{self.columns.set_id: key} for key in self.ids]
        for extra, group in zip(extras, self._groups, strict=False):
            extra[KEY] = group
        elements_of_sets = self._elements(without=self.columns.group)
        return [
            Example(
                cast("Any", elements),
                outputs,
                source,
                extra,
                elements=elements,
                grades=of_elements,
                weight=weight,
            )
            for elements, outputs, source, extra, of_elements, weight in zip(
                elements_of_sets,
                answers,
                self.sources,
                extras,
                grades,
                self._weights.tolist(),
                strict=True,
            )
        ]

    def dataset(self, task: Task, with_answers: bool = True) -> Dataset:
        """Return the sets as instances of an existing task.

        Args:
            task: the task. If the task has a schema, only the schema's fields are read.
            with_answers: whether to read the answers, if the table has a column of answers.

        Raises:
            InputError: a column is missing, a cell cannot be used, or an answer breaks the rules of
                the task.
        """
        schema = task.facts.schema
        elements = self._elements()
        if schema is None:
            pairs = zip(elements, self.sources, strict=True)
            parts = [checks.check_instance(rows, task, source) for rows, source in pairs]
            features = np.concatenate(parts)
        else:
            features = self.table.encode(schema)[self.rows]
        data = self._dataset(features, with_answers, task.facts.min_elements)
        for k, source in enumerate(self.sources):
            outputs = data.outputs(k)
            complaint = outputs is not None and task.answer_error(int(data.sizes[k]), outputs)
            if complaint:
                raise InputError(f"{source}: answer: {complaint}")
        return replace(data, carried={**data.carried, "elements": elements})

    def for_training(
        self,
        fields: Sequence[str] = (),
        missing: Missing = "fill",
        categories: Sequence[str] = (),
    ) -> tuple[Schema, Dataset]:
        """Infer the schema of the elements. Return the schema, and the sets encoded by the schema.

        Args:
            fields: the columns that the model reads. By default, these are all fields except the
                group's id, and those that are named like ids (`cells.is_id`), or have more than
                MAX_CATEGORIES different texts.
            missing: see `schema_of`.
            categories: columns that are categories, even if their cells are numbers. By default,
                the model also reads those that are named like ids.

        Raises:
            InputError: a column is missing, a cell cannot be used, or the model does not read one
                of `categories`.
        """
        source = self.table.source
        names = list(fields) or [
            name
            for name in self.names
            if name in categories or (not cells.is_id(name) and name != self.columns.group)
        ]
        check_names(names, source)
        check_read("categories", categories, names)
        seen, of_texts = [], []
        for name in names:
            if name not in self.names and self.table.default is None:
                raise InputError(
                    f'{source}: expected the column "{name}" to be a field, got '
                    f"{short(', '.join(self.names))}"
                )
            summary = Field(name, name in categories)
            is_raw = summary.is_category and name in self.table.columns  # as in `Table.encode`
            values = self.table.columns[name] if is_raw else self.table.values(name)
            summary.add(values, self.codes, self.table.place)
            if not (summary.is_number or summary.is_category):
                of_texts.append(name)
            if fields or summary.is_category or not summary.is_like_names:
                seen.append(summary)
        self._warn_of_typos(of_texts)
        if not seen:
            raise InputError(f"{source}: expected a field to learn from, got none")
        schema = schema_of(seen, missing)
        return schema, self._dataset(self.table.encode(schema)[self.rows], True)

    def _warn_of_typos(self, names: Sequence[str]) -> None:
        """Warn of columns of texts with more numbers than texts: their first texts may be typos.

        Only files of text have such columns. In other tables, numbers next to texts are refused.
        """
        typos = {}
        for name in names:
            if not self.table.is_text or name not in self.table.columns:
                continue
            parsed = cells.parse_cells(self.table.cells(name))
            texts = [k for k, value in enumerate(parsed) if isinstance(value, str)]
            if sum(isinstance(value, int | float) for value in parsed) > len(texts) > 0:
                place, text = self.table.place(texts[0]), short(parsed[texts[0]])
                typos[name] = f'{place}: "{name}": expected a number, as in most rows, got {text}'
        if typos:
            advice = "because of this cell, the column is read as texts"
            if len(typos) > 1:
                columns = listed(f'"{name}"' for name in typos)
                advice = f"because of such cells, {len(typos)} columns are read as texts: {columns}"
            first = next(iter(typos.values()))
            warnings.warn(f"{first}; {advice}", AmbiguousInputWarning, stacklevel=3)

    def _dataset(self, features: Floats, with_answers: bool, least: int = 1) -> Dataset:
        """Return the sets with these features, `(number of rows, d)`.

        A training reads its table by `for_training`, and a resumed training by `dataset`. The two
        methods must pass equal features: their checksum is the fingerprint, and a training is only
        resumed if the fingerprint is the same.
        """
        extra = [{self.columns.set_id: key} for key in self.ids]
        carried: dict[str, Any] = {"source": self.sources, "extra": extra}
        if self.weight:
            carried["weight"] = self._weights
        if self._groups:
            carried["group"] = [code_of(group) for group in self._groups]
        data = Dataset(features, self.starts, carried=carried)
        for source, size in zip(self.sources, data.sizes.tolist(), strict=True):
            checks.check_size(size, least, source)
        if not (with_answers and self.columns.answer[0]):
            return data
        answers, grades = self._answers
        data = replace(data.with_answers(answers), grades=grades)
        parts = [features, self.starts, np.concatenate(answers)]
        parts += [] if grades is None else [grades]
        parts += [self._weights] if self.weight else []
        parts += [] if data.groups is None else [data.groups]
        return replace(data, fingerprint=checksum(b"".join(part.tobytes() for part in parts)))

    @property
    def kind(self) -> Kind:
        """The kind of the answers. It follows from the setting that names the column of answers.

        For a column of ranks, the kind also depends on whether ranks have ties or are missing.
        """
        role, name = self.columns.answer
        kinds: dict[str, Kind] = {"chosen": "choice", "member": "set", "grade": "grades"}
        if role in kinds:
            return kinds[role]
        if self._answers[1] is not None:
            return "grades"
        has_gaps = any(map(is_missing, self.table.cells(name)))
        return "subset" if has_gaps else "permutation"

    @cached_property
    def _answers(self) -> tuple[list[Indices], Floats | None]:
        """The answer of each set, and the grades of all elements in the order of `rows`.

        If the column holds neither grades nor ranks with ties, the second value is None.
        """
        role, name = self.columns.answer
        column = self._sorted(self.table.cells(name))
        if role in ("chosen", "member"):
            flags = self._split(self._flags(column, name, role))
            indices: list[Indices] = [np.flatnonzero(part) for part in flags]
            for k, chosen in enumerate(indices if role == "chosen" else ()):
                if len(chosen) != 1:
                    first = self._place(int(self.starts[k]))
                    advice = (
                        "use --member if sets have several" if len(chosen) else "remove the set"
                    )
                    raise InputError(
                        f'{first}: "{name}": expected one chosen row of {self.sources[k]}, got '
                        f"{len(chosen)}; {advice}"
                    )
            return indices, None
        if role == "grade":
            values = cells.parse_column(self.table.values(name))  # categorical grades are texts
            grades = to_numbers(self._sorted(values), name, self._place)
            if np.isnan(grades).any():
                k = int(np.isnan(grades).argmax())
                raise InputError(f'{self._place(k)}: "{name}": expected a grade, got none')
        else:
            ranks = [_rank(v, f'{self._place(k)}: "{name}"') for k, v in enumerate(column)]
            parts = [_grades_of_ranks(part) for part in self._split(ranks)]
            if not any(_has_ties(part) for part in parts):
                return [ranking(part)[: np.count_nonzero(part)] for part in parts], None
            grades = np.concatenate(parts)
        return [ranking(part) for part in self._split(grades)], grades

    @cached_property
    def _weights(self) -> Floats:
        """`(number of sets,)`: the weight of each set; 1 if the table has no column of weights."""
        if not self.weight:
            return np.ones(len(self.ids))
        column = self._sorted(self.table.values(self.weight))
        numbers = to_numbers(column, self.weight, self._place)
        weights = numbers[self.starts[:-1]]
        differs = numbers != np.repeat(weights, np.diff(self.starts))  # NaN differs from itself
        if differs.any():
            k = int(differs.argmax())
            raise InputError(
                f'{self._place(k)}: "{self.weight}": expected the weight of '
                f"{self.sources[self.codes[self.rows[k]]]}, the same number in all of its rows, "
                f"got {short(column[k])}"
            )
        return checks.check_weights(weights, self.sources, f'"{self.weight}"')

    def _flags(self, column: Sequence[Any], name: str, role: str) -> NDArray[np.bool_]:
        texts = ["" if is_empty(value) else str(value).strip().lower() for value in column]
        others = [k for k, text in enumerate(texts) if text not in (*_TRUE, *_FALSE)]
        if others:
            # Numbers of alternatives, or a name in each row. Other texts may be typing errors.
            codes = [texts[k].removesuffix(".0").isdecimal() for k in others]
            is_wide = role == "chosen" and (all(codes) or len(others) == len(texts))
            raise InputError(
                f'{self._place(others[0])}: "{name}": expected 1 or 0, got '
                f"{short(column[others[0]])}" + is_wide * _reshaping(name)
            )
        return np.array([text in _TRUE for text in texts], bool)

    def answered(self, answers: Iterable[Indices], kind: str) -> Table:
        """Return the table with a column of answers; see `answer_cells`.

        `kind` decides whether the new column is that of the setting `chosen`, `member` or `rank`.
        If `self.columns` has this setting, it is the name of the new column.

        Args:
            answers: an answer for each set.
            kind: the kind of the answers.

        Raises:
            InputError: an element is in an answer twice, or the table already has a column with the
                name of the new column.
        """
        name, role = self.answer_column(kind), _ROLES.get(kind, "rank")
        sizes = np.diff(self.starts).tolist()
        parts = [
            answer_cells(role, outputs, n, source)
            for outputs, n, source in zip(answers, sizes, self.sources, strict=True)
        ]
        column = np.empty(len(self.rows), object)
        column[self.rows] = [cell for part in parts for cell in part]
        return replace(self.table, columns={**self.table.columns, name: column.tolist()})

    def answer_column(self, kind: str) -> str:
        """Return the name of the column that `answered` adds for answers of a kind.

        Raises:
            InputError: the table already has a column of this name.
        """
        role = _ROLES.get(kind, "rank")
        given, name = self.columns.answer
        if given != role:
            name = "place" if role == "rank" else role
        if name in self.table.columns:
            raise InputError(
                f'{self.table.source}: has a column "{name}" already; name another column for the '
                f"answers (--{role})"
            )
        return name


def _reshaping(name: str) -> str:
    """Return the advice to make a row of each alternative, for the end of an error message.

    Args:
        name: the column that has the number or the name of the chosen alternative.
    """
    return (
        "; if each row is a set of its own, with columns such as CAR_TIME and BUS_TIME, and "
        f'"{name}" has the number of an alternative, make a row of each alternative: '
        'pandas.concat(wide.filter(regex=f"^{a}_").rename(columns=lambda c: c.split("_", 1)[1])'
        f'.assign(set=wide.index, chosen=wide["{name}"].eq(k).astype(int)) '
        f'for k, a in {{1: "CAR", 2: "BUS"}}.items()); {WIDE_TABLES}'
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
        outputs: the answer.
        n: the number of elements.
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
        if columns.group and KEY in shared:
            shared[columns.group] = shared.pop(KEY)
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


def _has_ties(grades: Floats) -> bool:
    positive = grades[grades > 0]
    return len(np.unique(positive)) < len(positive)
