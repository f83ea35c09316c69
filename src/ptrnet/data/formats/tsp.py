"""TSPLIB's `.tsp` (Reinelt 1995): the whole file is one instance, with coordinates and a distance.

Lines `KEYWORD : value` in any order, with or without space around the colon, and a section of
data; EOF may be missing. `.tour` files have the same form, and `parse` reads both. A tour through
the cities of `NAME.tsp` is in `NAME.tour` beside it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TextIO

from ptrnet.data import checks
from ptrnet.data.cells import parse_index, parse_number
from ptrnet.data.formats.parts.format import Capabilities
from ptrnet.data.formats.parts.lines import numbered_lines
from ptrnet.data.sizes import LARGEST
from ptrnet.errors import InputError, short
from ptrnet.geometry.distances import PLANAR
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Nodes

CAPABILITIES = Capabilities(
    multiple=False, answers=False, distances=PLANAR[1:], task="tsp", stdout_format="tour"
)

SECTION = "NODE_COORD_SECTION"
UNNAMED = "unnamed"  # the name of instances that came from other formats


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`.

    Warns:
        AmbiguousInputWarning: coordinates of GEO that cannot be degrees and minutes.
    """
    allowed = {"TYPE": ("TSP",), "EDGE_WEIGHT_TYPE": PLANAR[1:]}
    keywords, rows = parse(path, SECTION, allowed)
    distance = required_value(keywords, "EDGE_WEIGHT_TYPE", path)
    required_value(keywords, "DIMENSION", path)
    lines: dict[int, int] = {}  # the line of each id
    points = []
    for line, fields in rows:
        source = f"{path}:{line}"
        if len(fields) != 3:
            raise InputError(
                f"{source}: expected a node: its id and two coordinates, got {len(fields)} "
                f"field{'s' * (len(fields) != 1)}"
            )
        node = parse_index(fields[0], f"{source}: field 1")
        if node < 0:  # -1 is the end of a tour in .tour files
            raise InputError(f"{source}: field 1: expected an id of 0 or more, got {node}")
        if node in lines:
            raise InputError(f"{source}: node {node} occurs twice, first on line {lines[node]}")
        lines[node] = line
        points.append([parse_number(fields[k], f"{source}: field {k + 1}") for k in (1, 2)])
    check_dimension(keywords, len(points), path)
    title = keywords["NAME"].value if "NAME" in keywords else ""
    nodes = Nodes(title or UNNAMED, list(lines))
    inputs = checks.check_instance(points, task, path)
    checks.check_distances(inputs, distance, path)
    yield Example(inputs, source=path, nodes=nodes, distance=distance)


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`. Raises InputError for an example with an answer."""
    for example in examples:
        if example.outputs is not None:
            raise InputError(f"{example.source}: a .tsp file holds no answer; write that to .tour")
        name, ids = nodes_of(example)
        lines = [
            f"NAME : {name}",
            "TYPE : TSP",
            f"DIMENSION : {len(ids)}",
            f"EDGE_WEIGHT_TYPE : {example.distance}",
            SECTION,
            *(f"{i} {x!r} {y!r}" for i, (x, y) in zip(ids, example.inputs.tolist(), strict=True)),
            "EOF",
        ]
        stream.writelines(f"{line}\n" for line in lines)


def nodes_of(example: Example) -> Nodes:
    """The name of an instance and the ids of its elements, 1 to n if no file gave others."""
    return example.nodes or Nodes(UNNAMED, list(range(1, len(example.inputs) + 1)))


class Entry(NamedTuple):
    """The value of a keyword and the number of its line."""

    value: str
    line: int


class TsplibFile(NamedTuple):
    """The content of a TSPLIB file."""

    keywords: dict[str, Entry]
    rows: list[tuple[int, list[str]]]  # of the section: line number and fields


def parse(path: str, section: str, allowed: Mapping[str, Sequence[str]]) -> TsplibFile:
    """Return the keywords of a file and the lines of its section.

    Args:
        path: the file.
        section: the keyword that opens the section.
        allowed: the values that some keywords may have; other keywords may have any.

    Raises:
        InputError: no such section or another one, a duplicate section or keyword, a value that
            is not allowed, any other line, or more elements than any instance may have.
    """
    keywords: dict[str, Entry] = {}
    rows: list[tuple[int, list[str]]] = []
    opened = inside = False  # whether the section has begun, and whether this line is in it
    for line, text in numbered_lines(path):
        source = f"{path}:{line}"
        keyword, colon, value = (part.strip() for part in text.partition(":"))
        if keyword == "EOF":
            break
        if keyword == section and not value:
            if opened:
                raise InputError(f"{source}: {section} occurs twice")
            opened = inside = True
        elif inside and not keyword[:1].isalpha():
            rows.append((line, text.split()))
            if len(rows) > LARGEST + 1:  # a tour has one line more than cities, -1
                raise InputError(f"{source}: expected at most {LARGEST} elements")
        elif keyword.endswith("_SECTION"):
            raise InputError(f"{source}: expected no section but {section}, got {short(keyword)}")
        elif not colon:
            raise InputError(
                f"{source}: expected KEYWORD : value or {section}, got {short(text.strip())}"
            )
        else:
            inside = False
            _add_entry(keywords, keyword, Entry(value, line), allowed, source)
    if not opened:
        raise InputError(f"{path}: expected a {section}, got none")
    return TsplibFile(keywords, rows)


def _add_entry(
    keywords: dict[str, Entry],
    keyword: str,
    entry: Entry,
    allowed: Mapping[str, Sequence[str]],
    source: str,
) -> None:
    """Add an entry to `keywords`, except comments."""
    if keyword == "COMMENT":
        return
    if keyword in keywords:
        raise InputError(
            f"{source}: {keyword} occurs twice, first on line {keywords[keyword].line}"
        )
    values = allowed.get(keyword)
    # Some files have a remark after the value, such as TYPE : TSP (M.~Hofmeister).
    if values is not None and (entry.value.split() or [""])[0] not in values:
        raise InputError(
            f"{source}: {keyword}: expected {' or '.join(values)}, got {short(entry.value)}"
        )
    keywords[keyword] = entry


def check_dimension(keywords: Mapping[str, Entry], n: int, path: str) -> None:
    """Refuse a DIMENSION other than n. It may be missing."""
    if "DIMENSION" in keywords and keywords["DIMENSION"].value != str(n):
        value, line = keywords["DIMENSION"]
        raise InputError(f"{path}:{line}: DIMENSION: expected the {n} nodes, got {short(value)}")


def required_value(keywords: Mapping[str, Entry], keyword: str, path: str) -> str:
    """Return the value of a keyword, without a remark after it, or raise InputError."""
    if keyword not in keywords:
        raise InputError(f"{path}: expected the keyword {keyword}, got none")
    return (keywords[keyword].value.split() or [""])[0]
