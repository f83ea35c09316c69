"""Read and write problems with a depot in TSPLIB's form: CVRPLIB's `.vrp`, OPLib's `.oplib`."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TextIO

from ptrnet.data import checks
from ptrnet.data.cells import parse_index, parse_number
from ptrnet.data.formats import tsp
from ptrnet.errors import InputError, short
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Nodes

DEPOTS = "DEPOT_SECTION"
# Keywords that do not change the instance, or that we check.
_KNOWN = {
    *("NAME", "TYPE", "DIMENSION", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE"),
    "DISPLAY_DATA_TYPE",
    "TSP_SOLUTION",  # the length of the shortest tour through all nodes
}


class Form(NamedTuple):
    """The keywords in a problem's files, and the fields of the problem that take the values."""

    type: str  # the value of TYPE
    limit: str  # the keyword of the capacity, or of the maximum length of a tour
    limit_field: str
    section: str  # the section with a number for each node
    number_field: str


_FORMS = {
    "cvrp": Form("CVRP", "CAPACITY", "capacity", "DEMAND_SECTION", "demand"),
    "orienteering": Form("OP", "COST_LIMIT", "limit", "NODE_SCORE_SECTION", "prize"),
}


def read(path: str, task: Task) -> Iterator[Example]:
    """Yield the only example. The depot becomes element 0, and distances are rounded."""
    form = _FORMS[task.name]
    allowed = {"TYPE": (form.type,), "EDGE_WEIGHT_TYPE": ("EUC_2D",)}
    file = tsp.parse(path, (tsp.NODES, form.section, DEPOTS), allowed)
    if "DISTANCE" in file.keywords:
        _, source = file.entry("DISTANCE")
        raise InputError(f"{source}: DISTANCE: routes of limited length are not supported")
    file.warn_of_unread({*_KNOWN, form.limit})
    file.entry("EDGE_WEIGHT_TYPE")  # raises if the keyword is missing
    limit = parse_number(file.entry(form.limit)[0], f"{path}: {form.limit}")
    ids, points = file.points(2)
    numbers = _numbers(file, ids, form.section)
    listed = chain.from_iterable(fields for _, fields in file.section(DEPOTS))
    depots = [field for field in listed if field != "-1"]
    if len(depots) != 1 or depots[0] not in map(str, ids):
        got = short(", ".join(depots)) if depots else "none"
        raise InputError(f"{path}: {DEPOTS}: expected the id of one node, got {got}")
    first = ids.index(int(depots[0]))
    order = [first, *(k for k in range(len(ids)) if k != first)]
    fields = {
        "position": [points[k] for k in order],
        form.number_field: [numbers[ids[k]] for k in order],
        form.limit_field: limit,
        "rounded": 1,
    }
    inputs = checks.check_instance(checks.from_dictionary(fields, task, path), task, path)
    yield Example(inputs, source=path, nodes=Nodes(file.name, [ids[k] for k in order]))


def _numbers(file: tsp.TsplibFile, ids: list[int], section: str) -> dict[int, float]:
    """Return the demand or prize of each node, by the node's id."""
    numbers: dict[int, float] = {}
    known = set(ids)
    for source, fields in file.section(section):
        if len(fields) != 2:
            raise InputError(f"{source}: expected an id and a number, got {len(fields)} fields")
        node = parse_index(fields[0], f"{source}: field 1")
        if node in numbers or node not in known:
            reason = "occurs twice" if node in numbers else f"is not in the {tsp.NODES}"
            raise InputError(f"{source}: node {node} {reason}")
        numbers[node] = parse_number(fields[1], f"{source}: field 2")
    for node in ids:
        if node not in numbers:
            raise InputError(f"{file.path}: {section}: expected a number for node {node}, got none")
    return numbers


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    form = _FORMS[task.name]
    for example in examples:
        fields = task.write_instance(example)
        if not fields.get("rounded"):
            raise InputError(
                f"{example.source}: distances in a file of TYPE {form.type} are whole numbers, but "
                "those of this instance are not rounded; write to .jsonl"
            )
        name, ids = tsp.nodes_of(example)
        position = example.inputs[:, :2].tolist()
        numbers = fields[form.number_field]
        lines = [
            f"NAME : {name}",
            f"TYPE : {form.type}",
            f"DIMENSION : {len(ids)}",
            "EDGE_WEIGHT_TYPE : EUC_2D",
            f"{form.limit} : {fields[form.limit_field]:.17g}",
            tsp.NODES,
            *(f"{node} {x!r} {y!r}" for node, (x, y) in zip(ids, position, strict=True)),
            form.section,
            *(f"{node} {number:.17g}" for node, number in zip(ids, numbers, strict=True)),
            DEPOTS,
            str(ids[0]),
            "-1",
            "EOF",
        ]
        stream.writelines(f"{line}\n" for line in lines)
