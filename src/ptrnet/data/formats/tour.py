"""TSPLIB's `.tour`: one tour through the cities of the `.tsp` beside it.

The cities of `NAME.tour` and of `NAME.opt.tour` are in `NAME.tsp`.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from ptrnet.data.cells import parse_index
from ptrnet.data.formats import tsp
from ptrnet.data.formats.parts.format import Capabilities
from ptrnet.errors import InputError, short
from ptrnet.geometry.distances import PLANAR
from ptrnet.metrics.tour import length
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Indices

CAPABILITIES = Capabilities(multiple=False, distances=PLANAR[1:], task="tsp")

SECTION = "TOUR_SECTION"


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    example = read_cities(path, task)
    keywords, rows = tsp.parse(path, SECTION, {"TYPE": ("TOUR",)})
    tsp.check_dimension(keywords, len(example.inputs), path)
    outputs = _tour(rows, tsp.nodes_of(example).ids, path)
    yield example.replace(outputs=outputs, source=path)


def read_cities(path: str, task: Task) -> Example:
    """Return the cities of a tour, from the `.tsp` beside the `.tour`.

    Args:
        path: of the `.tour`, which need not exist.
        task: of the example.

    Raises:
        InputError: there is no such `.tsp`, or it cannot be used.
    """
    stem = Path(path).with_suffix("")
    tsp_path = f"{stem.with_suffix('') if stem.suffix == '.opt' else stem}.tsp"
    # Path.is_file raises for names that are too long.
    if not os.path.isfile(tsp_path):  # noqa: PTH113
        raise InputError(f"{path}: its cities were expected in {tsp_path}, which does not exist")
    (example,) = tsp.read(tsp_path, task)
    return example


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`. Raises InputError for an example without a tour of all cities."""
    for example in examples:
        inputs, outputs = example.inputs, example.outputs
        if outputs is None:
            raise InputError(
                f"{example.source}: has no answer, and a .tour file holds nothing else"
            )
        complaint = task.answer_error(len(inputs), outputs, first=1)
        if complaint:
            raise InputError(f"{example.source}: the answer is not a tour: {complaint}")
        name, ids = tsp.nodes_of(example)
        lines = [
            f"NAME : {name}",
            f"COMMENT : length {length(inputs, outputs, example.distance):.0f}",
            "TYPE : TOUR",
            f"DIMENSION : {len(ids)}",
            SECTION,
            *(str(ids[city]) for city in outputs),
            "-1",
            "EOF",
        ]
        stream.writelines(f"{line}\n" for line in lines)


def _tour(rows: list[tuple[int, list[str]]], ids: list[int], path: str) -> Indices:
    """Return the tour `(n,)` as indices of elements.

    Args:
        rows: line number and fields of each line of the section; the fields are ids of cities.
        ids: of the elements, in their order.
        path: of the file.
    """
    positions = {city: k for k, city in enumerate(ids)}
    lines: dict[int, int] = {}  # of each city
    ended = False
    for line, field in ((line, field) for line, fields in rows for field in fields):
        source = f"{path}:{line}"
        city = parse_index(field, source)
        if city == -1:
            ended = True
        elif ended:
            raise InputError(
                f"{source}: expected one tour, ended by -1, got {short(field)} after it"
            )
        elif city not in positions:
            raise InputError(f"{source}: expected a city of the .tsp file, got {short(field)}")
        elif city in lines:
            raise InputError(f"{source}: city {city} occurs twice, first on line {lines[city]}")
        else:
            lines[city] = line
    missing = [city for city in ids if city not in lines]
    if missing:
        source = f"{path}:{rows[-1][0]}" if rows else path
        raise InputError(f"{source}: the tour ends without city {missing[0]}")
    return np.array([positions[city] for city in lines], np.int64)
