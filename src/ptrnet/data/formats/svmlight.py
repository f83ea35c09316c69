"""svmlight and LETOR: each line is an element, `GRADE qid:ID INDEX:VALUE ... # COMMENT`.

Features that a line does not name are 0. Lines with the same id are a set. Instead of ids, a file
`FILE.query` may list the number of lines of each set, as for LightGBM. The name of a field is the
index of its feature, such as `12`. Comments are kept in the field `#`.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ptrnet.data.cells import parse_index, parse_number
from ptrnet.data.columns import Columns
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import filled_lines
from ptrnet.data.tables import Table, sets_for_task
from ptrnet.errors import InputError, short
from ptrnet.tasks import CUSTOM
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import is_missing
from ptrnet.types import Example

CAPABILITIES = Capabilities(dictionaries=True, task=CUSTOM, stdout_format="jsonl")
COLUMNS = Columns(set_id="qid", grade="grade")
COMMENT = "#"


def read(path: str, task: Task) -> Iterator[Example]:
    return iter(sets_for_task(table(path), COLUMNS, task))


def companions(path: str) -> list[str]:
    sizes = f"{path}.query"
    return [sizes] if Path(sizes).is_file() else []


def table(path: str) -> Table:
    grades: list[float] = []
    ids: list[str] = []
    sources: list[str] = []
    comments: list[str] = []
    columns: dict[int, list[float]] = {}  # the values of each feature, up to the last line with it
    for source, text in filled_lines(path):
        content, _, comment = text.partition(COMMENT)
        if not content.strip():
            continue
        row = len(grades)
        grade, *fields = content.split()
        if fields and fields[0].startswith("qid:"):
            ids.append(fields.pop(0).removeprefix("qid:"))
        if ids and len(ids) != row + 1:
            raise InputError(f"{source}: expected qid:ID after the grade in every line or in none")
        grades.append(parse_number(grade, f"{source}: grade"))
        sources.append(source)
        comments.append(comment.strip())
        for field in fields:
            index, colon, value = field.partition(":")
            if not colon or not index.isascii() or not index.isdecimal():
                raise InputError(f"{source}: expected INDEX:VALUE, got {short(field)}")
            number = parse_index(index, f"{source}: feature")
            column = columns.setdefault(number, [])
            if len(column) > row:
                raise InputError(f"{source}: feature {index} occurs twice")
            column += [0.0] * (row - len(column))
            column.append(parse_number(value, f"{source}: feature {index}"))
    if not grades:
        raise InputError(f"{path}: holds no instance")
    table: dict[str, Sequence[Any]] = {"grade": grades, "qid": ids or _query_ids(path, len(grades))}
    for number, column in sorted(columns.items()):
        table[str(number)] = column + [0.0] * (len(grades) - len(column))
    if any(comments):
        table[COMMENT] = comments
    return Table(table, path, sources.__getitem__, default=0.0)


def _query_ids(path: str, count: int) -> list[str]:
    """Return the id of each row's set, counted from 1. `FILE.query` has the sizes of the sets."""
    files = companions(path)
    if not files:
        raise InputError(
            f"{path}: expected qid:ID after the grade, or a file {path}.query with the number of "
            "rows of each set"
        )
    (file,) = files
    sizes = []
    for source, text in filled_lines(file):
        sizes.append(parse_index(text.strip(), f"{source}: number of rows"))
        if sizes[-1] < 0:
            raise InputError(f"{source}: number of rows: expected 0 or more, got {sizes[-1]}")
    if sum(sizes) != count:
        raise InputError(f"{file}: expected {count} rows in all, as {path} has, got {sum(sizes)}")
    return np.repeat(np.arange(1, len(sizes) + 1), sizes).astype(str).tolist()


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    for number, example in enumerate(examples, 1):
        if example.grades is None:
            raise InputError(f"{example.source}: a .svmlight file needs grades, got none")
        if example.outputs is not None:
            in_order = example.grades[example.outputs].tolist()
            if in_order != sorted(example.grades.tolist(), reverse=True):
                raise InputError(
                    f"{example.source}: a .svmlight file would lose the answer, which is not in "
                    "the order of the grades; write to .jsonl"
                )
        key = str(example.extra.get("qid", number))
        if any(c.isspace() or c == COMMENT for c in key):
            raise InputError(
                f"{example.source}: expected a qid without spaces and #, got {short(key)}"
            )
        elements = example.elements or [
            {str(k): value for k, value in enumerate(row, 1)} for row in example.inputs.tolist()
        ]
        for grade, element in zip(example.grades.tolist(), elements, strict=True):
            features = {n: value for n, value in element.items() if n != COMMENT}
            for name, value in features.items():
                if not name.isdecimal() or isinstance(value, str) or is_missing(value):
                    raise InputError(
                        f'{example.source}: "{name}": a .svmlight file needs numbers, and indices '
                        f"as names of fields, got {short(value)}"
                    )
            named = sorted(features, key=int)
            row = [f"{name}:{_number(features[name])}" for name in named if features[name]]
            comment = [f"# {element[COMMENT]}"] if element.get(COMMENT) else []
            stream.write(" ".join([_number(grade), f"qid:{key}", *row, *comment]) + "\n")


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")
