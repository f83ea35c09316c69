"""TSPLIB's `.tsp`: the whole file is one instance, with coordinates and a distance.

A tour through its cities stands in a `.tour` beside it.
"""

from collections.abc import Iterable, Iterator
from typing import TextIO

from ptrnet.data import checks
from ptrnet.data.formats.parts import tsplib
from ptrnet.data.formats.parts.capabilities import Capabilities
from ptrnet.data.formats.parts.parsing import parse_index, parse_number
from ptrnet.errors import InputError
from ptrnet.geometry.distances import TSPLIB
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Nodes

CAPABILITIES = Capabilities(
    multiple=False, answers=False, distances=TSPLIB, task="tsp", stdout_format="tour"
)

SECTION = "NODE_COORD_SECTION"
UNNAMED = "unnamed"  # written for instances of other formats, which have no name


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`.

    Warns:
        AmbiguousInputWarning: coordinates of GEO that cannot be degrees and minutes.
    """
    allowed = {"TYPE": ("TSP",), "EDGE_WEIGHT_TYPE": TSPLIB}
    keywords, rows = tsplib.parse(path, SECTION, allowed)
    distance = tsplib.required_value(keywords, "EDGE_WEIGHT_TYPE", path)
    tsplib.required_value(keywords, "DIMENSION", path)
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
    tsplib.check_dimension(keywords, len(points), path)
    title = keywords["NAME"].value if "NAME" in keywords else ""
    nodes = Nodes(title or UNNAMED, list(lines))
    inputs = checks.check_instance(points, task, path)
    checks.check_magnitude(inputs, distance, path)
    checks.warn_of_decimal_degrees(inputs, distance, path)
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
    """The name of an instance and the ids of its elements; without those of a file, 1 to n."""
    return example.nodes or Nodes(UNNAMED, list(range(1, len(example.inputs) + 1)))
