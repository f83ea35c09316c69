"""TSPLIB's `.tsp` (Reinelt 1995): the whole file is one instance, of points or of distances.

A file has lines `KEYWORD : value` in any order, with or without spaces around the colon, and
sections of data. The last line, EOF, may be missing. `parse` also reads `.tour` files, which have
the same form. The answer to `NAME.tsp` is in `NAME.tour`. This module also reads and writes `.atsp`
files.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from ptrnet.data import checks
from ptrnet.data.cells import parse_index, parse_number
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import filled_lines
from ptrnet.errors import InputError, short, warn_ambiguous
from ptrnet.geometry.distances import EXPLICIT, SPATIAL, TSPLIB, is_directed
from ptrnet.tasks.base import Task
from ptrnet.tasks.tsp.ends import checked_rules
from ptrnet.types import LARGEST, Example, Floats, Nodes, TourRules

CAPABILITIES = Capabilities(
    multiple=False, answers=False, distances=TSPLIB, task="tsp", stdout_format="tour"
)

NODES, WEIGHTS = "NODE_COORD_SECTION", "EDGE_WEIGHT_SECTION"
FIXED, DISPLAY = "FIXED_EDGES_SECTION", "DISPLAY_DATA_SECTION"
UNNAMED = "unnamed"  # the name of instances that came from other formats

_TRIANGLES = ("UPPER", "LOWER")  # a file may hold only one triangle of a symmetric matrix
_FORMATS = (
    "FULL_MATRIX",
    *(f"{part}_{way}" for way in ("ROW", "DIAG_ROW", "COL", "DIAG_COL") for part in _TRIANGLES),
)
_ALLOWED = {
    "TYPE": ("TSP", "ATSP"),
    "EDGE_WEIGHT_TYPE": TSPLIB,
    "SALESMEN": ("1",),  # a keyword of LKH for several tours, which we do not support
}
# Keywords that do not change the instance, or that we check.
_KNOWN = {
    *_ALLOWED,
    *("NAME", "DIMENSION", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE"),
}

Row = tuple[str, list[str]]  # the source of a line, and its fields


def read(path: str, task: Task) -> Iterator[Example]:
    file = parse(path, (NODES, WEIGHTS, FIXED, DISPLAY), _ALLOWED)
    distance, _ = file.entry("EDGE_WEIGHT_TYPE")
    file.entry("DIMENSION")  # raises if the keyword is missing
    file.warn_of_unread(_KNOWN)
    if distance == EXPLICIT:
        inputs = _matrix(file)
        ids = list(range(1, len(inputs) + 1))
    else:
        ids, points = file.points(3 if distance in SPATIAL else 2)
        checks.check_size(len(points), task.facts.min_elements, path)
        inputs = np.array(points)
    checks.check_distances(inputs, distance, path)
    is_symmetric = "TYPE" not in file.keywords or file.entry("TYPE")[0] == "TSP"
    if distance == EXPLICIT and is_symmetric and is_directed(inputs[None])[0]:
        warn_ambiguous(
            f"{path}: distances depend on the direction, but TYPE is not ATSP; the file is read as "
            "ATSP"
        )
    rules = TourRules(fixed=_fixed_edges(file, ids))
    nodes = Nodes(file.name, ids)
    yield checked_rules(Example(inputs, source=path, nodes=nodes, distance=distance, rules=rules))


def _matrix(file: "TsplibFile") -> Floats:
    """Return the matrix `(n, n)` of EDGE_WEIGHT_SECTION. Its diagonal is set to 0."""
    path, rows = file.path, file.section(WEIGHTS)
    value, source = file.entry("DIMENSION")
    n = parse_index(value, f"{source}: DIMENSION")
    if not 1 <= n <= LARGEST:
        raise InputError(f"{source}: DIMENSION: expected 1 to {LARGEST} nodes, got {n}")
    value, source = file.entry("EDGE_WEIGHT_FORMAT")
    if value not in _FORMATS:
        raise InputError(
            f"{source}: EDGE_WEIGHT_FORMAT: expected one of {', '.join(_FORMATS)}, "
            f"got {short(value)}"
        )
    if value == "FULL_MATRIX":
        i, j = np.indices((n, n)).reshape(2, -1)
    else:
        # The columns of one triangle have the same numbers as the rows of the other, in order.
        is_upper = value.startswith("UPPER") == value.endswith("ROW")
        diagonal = 0 if "DIAG" in value else 1
        i, j = np.triu_indices(n, diagonal) if is_upper else np.tril_indices(n, -diagonal)
    weights = [
        parse_number(field, f"{source}: field {k}")
        for source, fields in rows
        for k, field in enumerate(fields, 1)
    ]
    if len(weights) != len(i):
        last = rows[-1][0] if rows else path
        raise InputError(
            f"{last}: expected {len(i)} distances, because a {value} of {n} nodes has so "
            f"many, got {len(weights)}"
        )
    dist = np.zeros((n, n))
    if value != "FULL_MATRIX":
        dist[j, i] = weights
    dist[i, j] = weights
    np.fill_diagonal(dist, 0)
    return dist


def _fixed_edges(file: "TsplibFile", ids: list[int]) -> tuple[tuple[int, int], ...]:
    """Return the fixed edges as pairs of indices of nodes."""
    ends: list[int] = []
    last = file.path
    for k, source in file.listed_nodes(FIXED, ids, "a node of a fixed edge"):
        last = source
        if k is None:
            break
        ends.append(k)
    if len(ends) % 2:
        raise InputError(f"{last}: expected two nodes of each fixed edge, got one")
    return tuple(zip(ends[::2], ends[1::2], strict=True))


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    for example in examples:
        name, ids = nodes_of(example)
        is_matrix = example.distance == EXPLICIT
        directed = is_matrix and is_directed(example.inputs[None])[0]
        ending = ".0" if is_matrix else ""  # TSPLIB writes whole distances without a point
        numbers = [
            " ".join(repr(x).removesuffix(ending) for x in row) for row in example.inputs.tolist()
        ]
        lines = [
            f"NAME : {name}",
            f"TYPE : {'ATSP' if directed else 'TSP'}",
            f"DIMENSION : {len(ids)}",
            f"EDGE_WEIGHT_TYPE : {example.distance}",
            *(["EDGE_WEIGHT_FORMAT : FULL_MATRIX", WEIGHTS, *numbers] if is_matrix else [NODES]),
            *(f"{i} {row}" for i, row in zip(ids, numbers, strict=True) if not is_matrix),
        ]
        if example.rules.fixed:
            lines += [FIXED, *(f"{ids[i]} {ids[j]}" for i, j in example.rules.fixed), "-1"]
        stream.writelines(f"{line}\n" for line in [*lines, "EOF"])


def nodes_of(example: Example) -> Nodes:
    """Return the name of an instance and the ids of its elements, by default 1 to n."""
    return example.nodes or Nodes(UNNAMED, list(range(1, len(example.inputs) + 1)))


@dataclass(frozen=True)
class TsplibFile:
    """The content of a TSPLIB file: values and sources of keywords, and the rows of sections."""

    path: str
    keywords: dict[str, tuple[str, str]]
    sections: dict[str, list[Row]]

    @property
    def name(self) -> str:
        """The name of the instance."""
        return self.keywords.get("NAME", ("", ""))[0] or UNNAMED

    def entry(self, keyword: str) -> tuple[str, str]:
        """Return the first word of a keyword's value, and its source. Refuse a missing keyword."""
        if keyword not in self.keywords:
            raise InputError(f"{self.path}: expected the keyword {keyword}, got none")
        value, source = self.keywords[keyword]
        return (value.split() or [""])[0], source

    def section(self, keyword: str) -> list[Row]:
        """Return the rows of a section. Refuse a missing section."""
        if keyword not in self.sections:
            raise InputError(f"{self.path}: expected a {keyword}, got none")
        return self.sections[keyword]

    def warn_of_unread(self, known: Collection[str]) -> None:
        """Warn about keywords that are ignored."""
        for keyword, (value, source) in self.keywords.items():
            if keyword not in known:
                warn_ambiguous(f"{source}: {keyword} : {value[:40]} is ignored")

    def check_dimension(self, n: int) -> None:
        """Refuse a DIMENSION other than n. The keyword may be missing."""
        value, source = self.keywords.get("DIMENSION", (str(n), ""))
        if value != str(n):
            raise InputError(
                f"{source}: DIMENSION: expected {n}, the number of nodes, got {short(value)}"
            )

    def points(self, d: int) -> tuple[list[int], list[list[float]]]:
        """Return the ids of the nodes and their d coordinates."""
        sources: dict[int, str] = {}  # by the id of a node
        points = []
        for source, fields in self.section(NODES):
            if len(fields) != d + 1:
                raise InputError(
                    f"{source}: expected a node: its id and {'two' if d == 2 else 'three'} "
                    f"coordinates, got {len(fields)} field{'s' * (len(fields) != 1)}"
                )
            node = parse_index(fields[0], f"{source}: field 1")
            if node < 0:  # -1 marks the end of a tour in .tour files
                raise InputError(f"{source}: field 1: expected an id of 0 or more, got {node}")
            if node in sources:
                raise InputError(f"{source}: node {node} occurs twice, first at {sources[node]}")
            sources[node] = source
            numbers = enumerate(fields[1:], 2)
            points.append([parse_number(field, f"{source}: field {k}") for k, field in numbers])
        self.check_dimension(len(points))
        return list(sources), points

    def listed_nodes(
        self, section: str, ids: list[int], expected: str
    ) -> Iterator[tuple[int | None, str]]:
        """Yield the index of each node in a section, or None for -1, and the source of the line.

        A missing section counts as empty. `ids` are those of the nodes, in the order of the
        elements. Error messages call a node `expected`, such as "a city".
        """
        positions = {node: k for k, node in enumerate(ids)}
        for source, fields in self.sections.get(section, []):
            for field in fields:
                node = parse_index(field, source)
                if node != -1 and node not in positions:
                    raise InputError(f"{source}: expected {expected}, got {short(field)}")
                yield positions.get(node), source


def parse(path: str, sections: Collection[str], allowed: Mapping[str, Sequence[str]]) -> TsplibFile:
    """Parse the keywords and the given sections of a file.

    `allowed` are the allowed values of some keywords. Other keywords may have any value. Raises
    InputError if a section or value is not allowed, a section or keyword occurs twice, a line
    cannot be parsed, or there are more than LARGEST nodes.
    """
    keywords: dict[str, tuple[str, str]] = {}
    found: dict[str, list[Row]] = {}
    section = ""  # the section of the current line
    for source, text in filled_lines(path):
        keyword, colon, value = (part.strip() for part in text.partition(":"))
        if keyword == "EOF":
            break
        if keyword in sections and not value:
            if keyword in found:
                raise InputError(f"{source}: {keyword} occurs twice")
            section = keyword
            found[section] = []
        elif section and not keyword[:1].isalpha():
            found[section].append((source, text.split()))
            if section == NODES and len(found[section]) > LARGEST:
                raise InputError(f"{source}: expected at most {LARGEST} elements")
        elif keyword.endswith("_SECTION"):
            raise InputError(
                f"{source}: expected the section {' or '.join(sections)}, got {short(keyword)}"
            )
        elif not colon:
            raise InputError(
                f"{source}: expected KEYWORD : value or {' or '.join(sections)}, "
                f"got {short(text.strip())}"
            )
        else:
            section = ""
            if keyword == "COMMENT":
                continue
            if keyword in keywords:
                first = keywords[keyword][1]
                raise InputError(f"{source}: {keyword} occurs twice, first at {first}")
            values = allowed.get(keyword)
            # Some files have a remark after the value, as in TYPE : TSP (M.~Hofmeister).
            if values is not None and (value.split() or [""])[0] not in values:
                raise InputError(
                    f"{source}: {keyword}: expected {' or '.join(values)}, got {short(value)}"
                )
            keywords[keyword] = value, source
    return TsplibFile(path, keywords, found)
