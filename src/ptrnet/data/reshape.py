"""Make long tables of tables as people have them. All other modules read long tables only.

A wide table gets a row for each alternative. Rows of elements that cannot be chosen are left out.
If nothing may be chosen, each set gets one more row, the outside option. `Table.origin` says how
answers go back to the rows of the original table.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.data.cells import parse_column
from ptrnet.data.columns import Columns, TableColumns, WeightedColumns
from ptrnet.data.tables import Origin, Table
from ptrnet.errors import InputError, listed, short, warn_ambiguous
from ptrnet.tasks.schema import NO_LAYOUT, Layout, category_of, flags_of, is_empty
from ptrnet.types import Indices

SET = "set"  # the column of the sets' numbers in a long table that was a wide one
_SEPARATORS = ("_", ".", "-", " ", ":")
_SLOT = re.compile(r"(\{alternative\}|\{number\}|\{field\})")
_AVAILABILITY = {"av", "avail", "available", "availability"}


def as_long(
    table: Table, columns: Columns, layout: Layout = NO_LAYOUT, with_answers: bool = True
) -> tuple[Table, Columns]:
    """Return a table with a row for each element that can be chosen, and its columns' names.

    The layout is that which a model keeps. If it is empty, `columns` describe the table. Raises
    InputError if the columns are not as described, a cell cannot be used, or an element was chosen
    that cannot be chosen.
    """
    if not layout and isinstance(columns, TableColumns):
        layout = layout_of(table, columns)
    if layout.is_wide(table.columns):
        return _of_wide(table, columns, layout, with_answers)
    if layout.alternatives or not (layout.available or layout.outside):
        return table, columns
    return _of_long(table, columns, layout, with_answers)


def layout_of(table: Table, columns: TableColumns) -> Layout:
    """Return the layout of a table that the user describes by the names of its columns.

    Raises InputError if the columns of alternatives are not found, or if they are ambiguous.
    """
    if not columns.alternatives:
        shared = _shared_columns(table, columns) if columns.outside else ()
        alone = (columns.available,) if columns.available else ()
        return Layout(available=alone, outside=columns.outside, shared=shared)
    names, (role, answer) = columns.names, columns.answer
    available: tuple[str, ...] = _one_field(table, columns.available, names, "available")
    answers: tuple[str, ...] = (answer,) if answer else ()
    if _SLOT.search(answer):
        answers = _one_field(table, answer, names, role)
        if "" in answers:
            lacks = names[answers.index("")]
            raise InputError(f"{table.source}: {role}: found no column of {lacks} like {answer}")
        answer = _SLOT.sub("", answer).strip("".join(_SEPARATORS)) or role
    elif role and role != "chosen":
        raise InputError(f"{role}: expected a pattern such as {{alternative}}_{role}, got {answer}")
    others = ("group", "weight", "set_id")
    named = {role: answer, **{key: getattr(columns, key, "") for key in others}}
    used = {*answers, *available, *named.values(), *columns.interacting}
    fields = _fields_of(table, columns, [name for name in table.columns if name not in used])
    for name in columns.interacting:
        cells = parse_column(table.cells(name)) if table.is_text else table.cells(name)
        if any(isinstance(cell, str) for cell in cells):
            raise InputError(f'{table.source}: interact: "{name}": expected numbers, got texts')
    return Layout(
        names,
        fields,
        available,
        columns.outside,
        answers=answers,
        interact=columns.interacting,
        named=tuple((key, name) for key, name in named.items() if key and name),
    )


def _shared_columns(table: Table, columns: Columns) -> tuple[str, ...]:
    """Return the columns of a long table that have one value in each set."""
    found, ids = [], table.cells(columns.set_id)
    for name, cells in table.columns.items():
        firsts: dict[Any, Any] = {}
        pairs = [(firsts.setdefault(key, cell), cell) for key, cell in zip(ids, cells, strict=True)]
        if all(first == cell or (is_empty(first) and is_empty(cell)) for first, cell in pairs):
            found.append(name)
    return tuple(name for name in found if name not in (columns.set_id, columns.answer[1]))


# The columns of alternatives


def _one_field(table: Table, pattern: str, names: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the column of each alternative by a pattern of a single field; empty if it has none.

    Raises InputError if no column has such a name.
    """
    if not pattern:
        return ()
    if not _SLOT.search(pattern) or "{field}" in pattern:
        raise InputError(
            f"{option}: expected a pattern such as {{alternative}}_{option}, got {short(pattern)}"
        )
    found = {k: column for column, (_, k) in _matches(table, pattern, names).items()}
    if not found:
        raise InputError(f"{table.source}: {option}: found no column like {pattern}{_got(table)}")
    return tuple(found.get(k, "") for k in range(len(names)))


def _matches(
    table: Table, pattern: str, names: Sequence[str], candidates: Iterable[str] | None = None
) -> dict[str, tuple[str, int]]:
    """Return the field and the alternative of each column whose name a pattern fits.

    If several alternatives fit, the longest name counts. Upper and lower case are the same.
    """
    parts = _SLOT.split(pattern)
    of_names = sorted(enumerate(names), key=lambda pair: -len(pair[1]))
    alone = _SLOT.sub("", pattern).strip("".join(_SEPARATORS)) or "value"
    found = {}
    for k, name in of_names:
        texts = {"{alternative}": re.escape(name), "{number}": str(k + 1), "{field}": "(.+)"}
        expression = re.compile("".join(texts.get(p, re.escape(p)) for p in parts), re.IGNORECASE)
        for column in table.columns if candidates is None else candidates:
            if column not in found and (match := expression.fullmatch(column)):
                found[column] = (match[1] if match.groups() else alone, k)
    return found


def _fields_of(
    table: Table, columns: TableColumns, candidates: Sequence[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the fields of the alternatives, and the column of each alternative.

    Raises InputError if a column can be of two alternatives, or an alternative has no column.
    """
    names, example = columns.names, f"{columns.names[0]}_cost or cost.{columns.names[0]}"
    patterns = columns.pattern.split(",") if columns.pattern else _usual(names)
    claims: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for pattern in map(str.strip, patterns):
        if not _SLOT.search(pattern.replace("{field}", "")):
            raise InputError(f"pattern: expected {{alternative}} in it, got {short(pattern)}")
        found = _matches(table, pattern, names, candidates)
        shared = defaultdict(set)
        for field, k in found.values():
            shared[field.casefold()].add(k)
        # Fields such as `car_seats` may be of one alternative alone. But if none has a second one,
        # or names are numbers, as in `floor2`, the columns may mean something else.
        has_numbers = "{number}" in pattern or all(map(str.isdecimal, names))
        is_sure = bool(columns.pattern) or any(len(ks) > 1 for ks in shared.values())
        for column, claim in found.items():
            if is_sure and not (has_numbers and len(shared[claim[0].casefold()]) == 1):
                claims[column].add(claim)
        if columns.pattern and not found:
            raise InputError(f"{table.source}: pattern: no column is like {pattern}{_got(table)}")
    fields: dict[str, tuple[str, list[str]]] = {}
    for column, of_column in claims.items():
        if len(of_column) > 1:
            ways = " or ".join(f'"{field}" of {names[k]}' for field, k in sorted(of_column))
            raise InputError(
                f'{table.source}: the column "{column}" may be {ways}; name all columns of '
                "alternatives by --pattern, such as {alternative}_{field}"
            )
        ((field, k),) = of_column
        _, of_field = fields.setdefault(field.casefold(), (field, [""] * len(names)))
        if of_field[k]:
            raise InputError(
                f'{table.source}: the columns "{of_field[k]}" and "{column}" may both be "{field}" '
                f"of {names[k]}; name all columns of alternatives by --pattern, such as "
                "{alternative}_{field}"
            )
        of_field[k] = column
    of_names = [[f for f, of_field in fields.values() if of_field[k]] for k in range(len(names))]
    lacking = listed(name for name, found in zip(names, of_names, strict=True) if not found)
    if lacking:
        seen = "; ".join(f"{n}: {', '.join(f)}" for n, f in zip(names, of_names, strict=True) if f)
        raise InputError(
            f"{table.source}: found no column of {lacking}, such as {example}"
            + (f"; found {short(seen, 200)}" if seen else _got(table))
            + "; name the columns by --pattern, such as {alternative}_{field}"
        )
    for field, of_field in fields.values():
        if field.casefold() in _AVAILABILITY and not columns.available:
            column = next(filter(None, of_field))
            warn_ambiguous(
                f'{table.source}: columns such as "{column}" are read as a field; if they say '
                "which alternatives can be chosen, name them by --available, such as "
                f"{{alternative}}_{field}"
            )
    return tuple((field, tuple(of_field)) for field, of_field in fields.values())


def _usual(names: Sequence[str]) -> list[str]:
    """Return the patterns of names that ptrnet finds by itself."""
    patterns = []
    for mark in _SEPARATORS:
        patterns += [f"{{alternative}}{mark}{{field}}", f"{{field}}{mark}{{alternative}}"]
    return patterns + ["{field}{alternative}"] * all(map(str.isdecimal, names))


def _got(table: Table) -> str:
    return f", got {short(', '.join(map(str, table.columns)), 200)}"


# Wide tables


def _of_wide(
    table: Table, columns: Columns, layout: Layout, with_answers: bool
) -> tuple[Table, Columns]:
    names, width = layout.names, len(layout.names)
    named = dict(layout.named)
    long = layout.stacked(table.columns, table.source)
    can = layout.can_be_chosen(table.columns, table.place)
    set_id = named.get("set_id", SET)
    if "set_id" not in named:
        while set_id in long:
            set_id += "_"
        long[set_id] = [row + 1 for row in range(len(table)) for _ in names]
    elif len({*table.cells(set_id)}) < len(table):
        raise InputError(f'{table.source}: "{set_id}": expected another id in each row')
    role = next((key for key in named if key not in ("group", "weight", "set_id")), "")
    given = {key: getattr(columns, key, "") for key in ("group", "weight")}
    for key in given:  # by default those of the training, if the table has them
        if not given[key] and named.get(key) in table.columns:
            given[key] = named[key]
    if with_answers and role:
        cells = _answers(table, layout)
        if named[role] in long:
            raise InputError(f'{table.source}: two columns are called "{named[role]}"; rename one')
        long[named[role]] = cells
        chosen = _chosen(table, layout, cells) if role == "chosen" else None
        if chosen is not None:
            _check_chosen(table, layout, chosen, can)
            if layout.outside:
                cells[width - 1 :: width] = (~chosen.any(1)).astype(int).tolist()
    slots: Indices = np.flatnonzero(can)
    origin = Origin(table, layout, slots, slots % width)
    rows = slots.tolist()
    made = Table(
        {name: [cells[k] for k in rows] for name, cells in long.items()},
        table.source,
        lambda k: f"{table.place(rows[k] // width)}: {names[rows[k] % width]}",
        table.is_text,
        origin=origin,
    )
    answer = {role: named[role]} if with_answers and role else {}
    return made, WeightedColumns(set_id=set_id, **given, **answer)


def _answers(table: Table, layout: Layout) -> list[Any]:
    """Return the column of answers of the long table."""
    names, width = layout.names, len(layout.names)
    if len(layout.answers) > 1:
        parts = [table.cells(name) for name in layout.answers]
        parts += [[0] * len(table)] * (width - len(parts))
        return [cell for row in zip(*parts, strict=True) for cell in row]
    (column,) = layout.answers
    codes = {str(k): k - 1 for k in range(1, len(layout.alternatives) + 1)}
    codes |= {name.casefold(): k for k, name in enumerate(names)}
    if layout.outside:
        codes = {"": width - 1, "0": width - 1, **codes}
    answers = [0] * (len(table) * width)
    for row, cell in enumerate(table.cells(column)):
        text = (category_of(cell) or "").strip().casefold()
        if text not in codes:
            advice = ""
            if text in ("", "0") and not layout.outside:
                advice = "; if it means none of them, name this answer, such as --outside none"
            raise InputError(
                f'{table.place(row)}: "{column}": expected one of {short(", ".join(names), 200)}, '
                f"or 1 to {len(layout.alternatives)}, got {short(cell)}{advice}"
            )
        answers[row * width + codes[text]] = 1
    return answers


def _chosen(table: Table, layout: Layout, cells: Sequence[Any]) -> NDArray[np.bool_]:
    """Return `(rows, alternatives)`: which alternative of a wide table was chosen."""
    width = len(layout.names)
    name = dict(layout.named)["chosen"]
    flags = flags_of(cells, name, lambda k: table.place(k // width)).reshape(-1, width)
    return flags[:, : len(layout.alternatives)]


def _check_chosen(
    table: Table, layout: Layout, chosen: NDArray[np.bool_], can: NDArray[np.bool_]
) -> None:
    refused = chosen & ~can[:, : chosen.shape[1]]
    if refused.any():
        row, k = (int(i) for i in np.argwhere(refused)[0])
        column = layout.answers[k if len(layout.answers) > 1 else 0]
        raise InputError(
            f'{table.place(row)}: "{column}": {layout.names[k]} was chosen, but '
            f'"{layout.available[k]}" says that it cannot be chosen'
        )


# Long tables


def _of_long(
    table: Table, columns: Columns, layout: Layout, with_answers: bool
) -> tuple[Table, Columns]:
    numbers: dict[Any, int] = {}
    ids = table.cells(columns.set_id)
    sets: Indices = np.array([numbers.setdefault(key, len(numbers)) for key in ids])
    role, answer = columns.answer if with_answers else ("", "")
    can = np.ones(len(table), bool)
    for name in layout.available:
        can = flags_of(table.cells(name), name, table.place)
        left = np.bincount(sets[can], minlength=len(numbers))
        if not left.all():
            k = int(np.flatnonzero(left[sets] == 0)[0])
            raise InputError(
                f'{table.place(k)}: "{name}": no element of {columns.set_id} {short(ids[k])} can '
                "be chosen"
            )
    chosen = np.zeros(len(table), bool)
    if role == "chosen":
        chosen = flags_of(table.cells(answer), answer, table.place)
        if (chosen & ~can).any():
            k = int((chosen & ~can).argmax())
            raise InputError(
                f'{table.place(k)}: "{answer}": the row was chosen, but "{layout.available[0]}" '
                "says that it cannot be chosen"
            )
    # Sets keep the order of their first rows, also if those cannot be chosen.
    slots: Indices = np.flatnonzero(can)
    slots = slots[np.argsort(sets[slots], kind="stable")]
    rows = slots.tolist()
    made = {
        name: [cells[k] for k in rows]
        for name, cells in table.columns.items()
        if name not in layout.available
    }
    firsts = np.unique(sets, return_index=True)[1].tolist()
    if layout.outside:
        if layout.outside in table.columns:
            raise InputError(
                f'{table.source}: has a column "{layout.outside}" already; give the outside option '
                "another name"
            )
        shared = {*layout.shared, columns.set_id, columns.group, getattr(columns, "weight", "")}
        for name, cells in made.items():
            cells += [table.columns[name][k] if name in shared else None for k in firsts]
        made[layout.outside] = [0] * len(rows) + [1] * len(firsts)
        if role == "chosen":
            has_chosen = np.bincount(sets[chosen], minlength=len(numbers)) > 0
            made[answer][len(rows) :] = (~has_chosen).astype(int).tolist()
        slots = np.concatenate([slots, np.full(len(firsts), -1)])
    order = np.argsort(sets, kind="stable")
    starts = np.searchsorted(sets[order], np.arange(len(numbers)))
    positions = np.empty(len(table), np.int64)
    positions[order] = np.arange(len(table)) - starts[sets[order]]
    origin = Origin(table, layout, slots, np.where(slots < 0, -1, positions[slots]))
    places = [*rows, *firsts]
    return (
        Table(
            made,
            table.source,
            lambda k: table.place(places[k]),
            table.is_text,
            table.default,
            origin=origin,
        ),
        columns,
    )
