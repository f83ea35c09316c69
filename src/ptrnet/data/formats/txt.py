"""Text: `x1 y1 x2 y2 ... output i1 i2 ...`, one example per line, with 1-based indices.

Vinyals, Fortunato and Jaitly published their data in this format. Hulls and tours repeat their
first index at the end. `<ENDT>` separates triangles. We write answers in this form. We also read
hulls and tours without the repeated index. Triangles may be without any `<ENDT>`, or may have an
`<ENDT>` after the last triangle.

Pages of documents with texts, such as PAGE-XML or PDF, are written as plain text: the texts of the
boxes in reading order, and a form feed after each page.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TextIO

import numpy as np

from ptrnet.data import checks, formats
from ptrnet.data.cells import parse_index, parse_number
from ptrnet.data.dataset import examples_of_rows
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import Block, display_name, filled_lines, lines_of_block
from ptrnet.errors import InputError, warn_ambiguous
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import LARGEST_UNROUNDED
from ptrnet.types import Example, Floats, Indices

CAPABILITIES = Capabilities()


class Syntax(NamedTuple):
    """How the answers of a task are written. By default they are plain indices."""

    closed: bool = False  # whether the first index is repeated at the end
    separator: str = ""  # the word between items such as triangles; empty for none


_SYNTAX = {
    "hull": Syntax(closed=True),
    "tsp": Syntax(closed=True),
    "delaunay": Syntax(separator="<ENDT>"),
}


def read(path: str, task: Task) -> Iterator[Example]:
    examples, count = examples_of_rows(_rows(filled_lines(path), task), path), 0
    for count, example in enumerate(examples, 1):  # noqa: B007  read outside
        yield example
        if example.outputs is not None or len(example.inputs) > 1:
            yield from examples
            return
    # Other programs write a single instance like this.
    if count > 1:
        warn_ambiguous(
            f"{display_name(path)}: each of its {count} lines was read as an instance of one "
            "element; write all elements of an instance in one line, or as the rows of a .csv"
        )


def read_block(block: Block, path: str, task: Task) -> Iterator[Example]:
    """Yield the examples in a block of the file, with the same checks as `read` in this module."""
    return examples_of_rows(_rows(lines_of_block(block, path), task), path)


def _rows(lines: Iterable[tuple[str, str]], task: Task) -> Iterator[dict[str, Any]]:
    """Yield the arguments of an example for each line, given its source and its text."""
    for source, text in lines:
        fields = text.split()
        count = fields.index("output") if "output" in fields else len(fields)
        inputs = _parse_instance(fields[:count], task, source)
        row = {"inputs": inputs, "source": source}
        if count < len(fields):
            answer = fields[count + 1 :]
            row["outputs"] = _parse_answer(answer, count + 2, len(inputs), task, source)
        yield row


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    for example in examples:
        if example.page is not None and example.page.texts:
            texts = example.page.texts
            order = range(len(texts)) if example.outputs is None else example.outputs
            stream.write("".join(f"{texts[i]}\n" for i in order if texts[i]) + "\f")
            continue
        fields = list(map(repr, example.inputs.ravel().tolist()))  # can be read back exactly
        if example.outputs is not None:
            fields += ["output", *_answer_fields(example.outputs + 1, task, example.rules.is_open)]
        stream.write(" ".join(fields) + "\n")


def _answer_fields(indices: Indices, task: Task, is_open: bool) -> list[str]:
    """Return the fields of an answer, `(m,)` or `(t, item_size)`, with 1-based indices.

    The format cannot mark open paths. We write an open path without a repeated index, and read the
    path back as a closed tour.
    """
    closed, separator = _SYNTAX.get(task.name, Syntax())
    if separator:
        items = [" ".join(map(str, item)) for item in indices.tolist()]
        return f" {separator} ".join(items).split()
    flat = indices.ravel().tolist()
    return [str(i) for i in (flat + flat[:1] if closed and not is_open else flat)]


def _parse_instance(fields: list[str], task: Task, source: str) -> Floats:
    """Parse the instance `(n, d)` in the first fields of a line."""
    d = task.facts.num_features
    n, rest = divmod(len(fields), d)
    if rest or not n:
        got = f"{len(fields)} number{'s' * (len(fields) != 1)}"
        hint, has_commas = "is the line cut off?", any("," in field for field in fields)
        others = "" if n else formats.extensions_for(task)
        if source.startswith(display_name("-")) and (has_commas or others):
            hint = "standard input has to be .txt or .jsonl; name a file of another format"
        elif has_commas:
            hint = "if this is a .csv file, change its extension, which sets the format"
        elif others:
            hint = f"the extension sets the format, which may also be {others}"
        raise InputError(f"{source}: expected {d} numbers for each element, got {got}; {hint}")
    checks.check_size(n, task.facts.min_elements, source)
    try:
        values = np.array([*map(float, fields)])
        text = "".join(fields)
        is_small = (np.abs(values) <= LARGEST_UNROUNDED).all()  # also False for NaN
        valid = is_small and text.isascii() and "_" not in text
    except ValueError:
        valid = False
    if not valid:  # parse the fields one by one, so that the error message names the field
        values = np.array(
            [parse_number(f, f"{source}: field {k}") for k, f in enumerate(fields, 1)]
        )
    inputs = values.reshape(n, d)
    checks.check_solvable(inputs, task, source)
    return inputs


def _parse_answer(fields: list[str], offset: int, n: int, task: Task, source: str) -> Indices:
    """Parse the answer in the last fields of a line. The answer begins with field `offset`."""
    if not fields and task.answer_error(n, np.zeros(0, np.int64)) is not None:
        raise InputError(
            f"{source}: expected indices after 'output', got none; is the line cut off?"
        )
    closed, separator = _SYNTAX.get(task.name, Syntax())
    marks = [k for k, field in enumerate(fields) if field == separator]
    # An item is between two separators. There may be a separator after the last item.
    for before, after in zip([-1, *marks], [*marks, len(fields)] if marks else [], strict=False):
        if after - before - 1 != task.facts.item_size and before + 1 < len(fields):
            raise InputError(
                f"{source}: field {before + 1 + offset}: expected {task.facts.item_size} indices "
                f"between {separator}, got {after - before - 1}"
            )
    positions = [k for k, field in enumerate(fields) if field != separator]
    numbers = [fields[k] for k in positions]
    digits = "".join(numbers)
    if digits.isascii() and digits.isdecimal() and len(max(numbers, key=len)) <= 18:
        indices = [*map(int, numbers)]
    else:
        indices = [parse_index(fields[k], f"{source}: field {k + offset}") for k in positions]
    if closed and len(indices) > 1 and indices[0] == indices[-1]:
        indices.pop()
    return checks.check_answer(indices, n, task, source, first=1)
