"""The authors' text format: `x1 y1 x2 y2 ... output i1 i2 ...`, one example a line, 1-based.

Hull answers and tours repeat their first index at the end; readers accept the repeat or its
absence. Triangles have `<ENDT>` between them; readers accept them without it, and one at the end.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TextIO

import numpy as np

from ptrnet.data import checks
from ptrnet.data.formats.parts.capabilities import Capabilities
from ptrnet.data.formats.parts.lines import Block, numbered, numbered_in
from ptrnet.data.formats.parts.parsing import index, number
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices

CAPABILITIES = Capabilities()


class Syntax(NamedTuple):
    """How the text format writes the answers of a task: by default as indices alone."""

    closed: bool = False  # the first index is repeated at the end
    separator: str = ""  # the word between items


_SYNTAX = {
    "hull": Syntax(closed=True),
    "tsp": Syntax(closed=True),
    "delaunay": Syntax(separator="<ENDT>"),
}


def read(name: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    return _examples(numbered(name), "standard input" if name == "-" else name, task)


def read_block(block: Block, name: str, task: Task) -> Iterator[Example]:
    """The examples of a block of lines; complaints are those of `read`."""
    return _examples(numbered_in(block, name), name, task)


def _examples(lines: Iterable[tuple[int, str]], name: str, task: Task) -> Iterator[Example]:
    for line, text in lines:
        where = f"{name}:{line}"
        before, word, after = _split(text)
        inputs = _instance(before, task, where)
        outputs = _answer(after, len(before) + 2, len(inputs), task, where) if word else None
        yield Example(inputs, outputs, where)


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`. Numbers are written so that they read back the same."""
    for example in examples:
        fields = [repr(value) for value in example.inputs.ravel().tolist()]
        if example.outputs is not None:
            fields += ["output", *_written(example.outputs + 1, task)]
        stream.write(" ".join(fields) + "\n")


def _written(indices: Indices, task: Task) -> list[str]:
    syntax = _SYNTAX.get(task.name, Syntax())
    if syntax.separator:
        items = [" ".join(map(str, item)) for item in indices.tolist()]
        return f" {syntax.separator} ".join(items).split()
    flat = indices.ravel().tolist()
    return [str(i) for i in (flat + flat[:1] if syntax.closed else flat)]


def _split(text: str) -> tuple[list[str], bool, list[str]]:
    fields = text.split()
    if "output" not in fields:
        return fields, False, []
    place = fields.index("output")
    return fields[:place], True, fields[place + 1 :]


def _instance(fields: list[str], task: Task, where: str) -> Floats:
    d = task.num_features
    n, rest = divmod(len(fields), d)
    if rest or not n:
        got = f"{len(fields)} number{'s' * (len(fields) != 1)}"
        raise InputError(f"{where}: expected {d} numbers for each element, got {got}; a cut line?")
    checks.size(n, task, where)
    try:
        values = np.array(fields, np.float64)
        written = "".join(fields)
        whole = np.isfinite(values).all() and written.isascii() and "_" not in written
    except ValueError:
        whole = False
    if not whole:
        values = np.array([number(f, f"{where}: field {k}") for k, f in enumerate(fields, 1)])
    inputs = values.reshape(n, d)
    checks.fit(inputs, task, where)
    return inputs


def _answer(fields: list[str], first: int, n: int, task: Task, where: str) -> Indices:
    if not fields and task.answer_error(n, np.zeros(0, np.int64)) is not None:
        raise InputError(f"{where}: expected indices after 'output', got none; a cut line?")
    closed, separator = _SYNTAX.get(task.name, Syntax())
    marks = [k for k, field in enumerate(fields) if separator and field == separator]
    for before, after in zip([-1, *marks], [*marks, len(fields)] if marks else [], strict=False):
        if after - before - 1 != task.item_size and before + 1 < len(fields):
            raise InputError(
                f"{where}: field {before + 1 + first}: expected {task.item_size} indices between "
                f"{separator}, got {after - before - 1}"
            )
    places = [k for k, field in enumerate(fields) if not (separator and field == separator)]
    words = [fields[k] for k in places]
    written = "".join(words)
    if written.isascii() and written.isdecimal() and len(max(words, key=len)) <= 18:
        indices = [*map(int, words)]
    else:
        indices = [
            index(f, f"{where}: field {k + first}") for k, f in zip(places, words, strict=True)
        ]
    if closed and len(indices) > 1 and indices[0] == indices[-1]:
        indices.pop()
    return checks.answer(indices, n, task, where, first=1)
