"""TSPLIB's `.tour`: tours through the cities of the `.tsp` or `.atsp` beside it.

The cities of `NAME.tour` and of `NAME.opt.tour` are in `NAME.tsp`, or else in `NAME.atsp`. A file
with several tours, each ended by -1, is read as that many examples.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from ptrnet.data.cells import parse_index
from ptrnet.data.formats import Capabilities, tsp
from ptrnet.errors import InputError, short
from ptrnet.geometry.distances import TSPLIB
from ptrnet.metrics.tour import length
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Indices

CAPABILITIES = Capabilities(multiple=False, distances=TSPLIB, task="tsp")

SECTION = "TOUR_SECTION"


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    example = read_cities(path, task)
    keywords, sections = tsp.parse(path, (SECTION,), {"TYPE": ("TOUR",)})
    if SECTION not in sections:
        raise InputError(f"{path}: expected a {SECTION}, got none")
    tsp.check_dimension(keywords, len(example.inputs), path)
    for outputs in _tours(sections[SECTION], tsp.nodes_of(example).ids, path):
        yield example.replace(outputs=outputs, source=path)


def read_cities(path: str, task: Task) -> Example:
    """Return the cities of a tour, from the `.tsp` or `.atsp` beside the `.tour`.

    Args:
        path: of the `.tour`, which need not exist.
        task: of the example.

    Raises:
        InputError: there is no such `.tsp`, or it cannot be used.
    """
    stem = Path(path).with_suffix("")
    stem = stem.with_suffix("") if stem.suffix == ".opt" else stem
    for cities in (f"{stem}.tsp", f"{stem}.atsp"):
        # Path.is_file raises for names that are too long.
        if os.path.isfile(cities):  # noqa: PTH113
            (example,) = tsp.read(cities, task)
            return example
    raise InputError(f"{path}: its cities were expected in {stem}.tsp, which does not exist")


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
        is_open = example.rules.is_open
        measured = length(inputs, outputs, example.distance, is_open)
        lines = [
            f"NAME : {name}",
            f"COMMENT : {'open path, ' * is_open}length {measured:.15g}",
            "TYPE : TOUR",
            f"DIMENSION : {len(ids)}",
            SECTION,
            *(str(ids[city]) for city in outputs),
            "-1",
            "EOF",
        ]
        stream.writelines(f"{line}\n" for line in lines)


def _tours(rows: list[tsp.Row], ids: list[int], path: str) -> Iterator[Indices]:
    """Yield the tours `(n,)` as indices of elements.

    Args:
        rows: of the section; the fields are ids of cities, and -1 after each tour.
        ids: of the elements, in their order.
        path: of the file.
    """
    positions = {city: k for k, city in enumerate(ids)}
    lines: dict[int, int] = {}  # of each city of this tour
    source, is_first = path, True
    for line, field in [*((line, field) for line, fields in rows for field in fields), (0, "-1")]:
        source = f"{path}:{line}" if line else source
        city = parse_index(field, source)
        if city == -1:
            if not lines and not is_first:
                continue  # the end of all tours
            missing = [city for city in ids if city not in lines]
            if missing:
                raise InputError(f"{source}: the tour ends without city {missing[0]}")
            yield np.array([positions[city] for city in lines], np.int64)
            lines, is_first = {}, False
        elif city not in positions:
            raise InputError(f"{source}: expected a city of the .tsp file, got {short(field)}")
        elif city in lines:
            raise InputError(f"{source}: city {city} occurs twice, first on line {lines[city]}")
        else:
            lines[city] = line
