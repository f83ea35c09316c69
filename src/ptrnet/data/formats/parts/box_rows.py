"""Boxes of pages as rows of a table, for task `reading-order` in `.csv` and `.tsv`.

The header names the corners, as one of `CORNERS`. It may name a column `label`, whose cells may be
empty, and a column `page`: each of its values is an instance. Without a header, there are four
columns: left, top, right and bottom. Other columns are kept.

Tesseract's .tsv has nested boxes: pages, blocks, paragraphs, lines and words, which its
column `level` tells apart. We read only rows of one level. Its `page_num` is our `page`.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from ptrnet.data import checks
from ptrnet.data.cells import is_number, parse_number
from ptrnet.data.formats.parts.pages import usable
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.tasks.reading_order import LABEL, label_name, label_number, warn_of_classes
from ptrnet.types import CsvText, Example, Page

CORNERS = (
    ("left", "top", "right", "bottom"),
    ("x0", "y0", "x1", "y1"),
    ("x1", "y1", "x2", "y2"),
    ("xmin", "ymin", "xmax", "ymax"),
    ("x", "y", "width", "height"),
    ("left", "top", "width", "height"),
)
HEADER = ["page", *CORNERS[0], "label"]


def read(
    rows: Sequence[list[str]], places: Sequence[str], source: str, task: Task
) -> Iterator[Example]:
    """Yield an example for each page in the rows of a file, whose sources are `places`.

    Pages that cannot be used are left out; see `usable`.

    Raises:
        InputError: the columns are not named as expected, or no page can be used.
    """
    header = None if all(map(is_number, rows[0])) else rows[0]
    names = [*CORNERS[0]] if header is None else [name.lower() for name in header]
    named = next((four for four in CORNERS if {*four} <= {*names}), None)
    is_polygon = "x3" in names  # x1, y1, ..., x4, y4
    if named is None or is_polygon or len(names) != len(rows[0]):
        raise InputError(
            f"{places[0]}: expected the columns {'; or '.join(map(', '.join, CORNERS))}; and "
            f"perhaps label and page; got {', '.join(rows[0])[:80]}"
        )
    columns = [names.index(name) for name in named]
    if "label" not in names:
        warn_of_classes(names, "label")
    if {"level", "page_num"} <= {*names}:
        levels = sorted({row[names.index("level")] for row in rows[1:]})
        if len(levels) > 1:
            raise InputError(
                f"{source}: has nested boxes of levels {', '.join(levels)[:80]}; keep the "
                "rows of one level, such as 2 for Tesseract's blocks, or let Tesseract write .hocr"
            )
        names[names.index("page_num")] = "page"
    pages: dict[str, list[int]] = {}
    for k in range(header is not None, len(rows)):
        page = rows[k][names.index("page")] if "page" in names else ""
        pages.setdefault(page, []).append(k)
    if not pages:
        raise InputError(f"{source}: expected boxes below the header, got none")

    def attempt(page: str, members: Sequence[int]) -> Iterator[Example]:
        values = []
        for k in members:
            box = [parse_number(rows[k][c], f"{places[k]}: column {c + 1}") for c in columns]
            if named[2] == "width":
                box = [*box[:2], box[0] + box[2], box[1] + box[3]]
            label = rows[k][names.index("label")] if "label" in names else ""
            values.append([*box, label_number(label or None, places[k])])
            if task.instance_error(checks.encode(values[-1:], task, places[k])):
                raise InputError(f"{places[k]}: expected left <= right and top <= bottom")
        inputs = checks.check_instance(values, task, places[members[0]])
        table = CsvText(header, [rows[k] for k in members], columns)
        of = Page(page) if "page" in names else None
        yield Example(inputs, source=places[members[0]], table=table, page=of)

    yield from usable(partial(attempt, *page) for page in pages.items())


def table_of(example: Example) -> CsvText:
    """Return the rows of an example that was not read from a table."""
    name = example.source if example.page else None
    rows = [
        [*[name] * (name is not None), *box[:LABEL].tolist(), label_name(box[LABEL]) or ""]
        for box in example.inputs
    ]
    return CsvText(HEADER if name is not None else HEADER[1:], rows, [])
