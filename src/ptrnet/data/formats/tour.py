"""TSPLIB's `.tour`: tours through the cities of the `.tsp` or `.atsp` file in the same folder.

The cities of `NAME.tour` and `NAME.opt.tour` are in `NAME.tsp`. If this file does not exist, the
cities are in `NAME.atsp`. The number -1 ends a tour. If a file has several tours, each of them is
an example.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TextIO

import numpy as np

from ptrnet.data.formats import Capabilities, tsp
from ptrnet.errors import InputError
from ptrnet.files import exists
from ptrnet.geometry.distances import TSPLIB
from ptrnet.metrics.tour import length
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Indices

CAPABILITIES = Capabilities(multiple=False, distances=TSPLIB, task="tsp")

SECTION = "TOUR_SECTION"


def read(path: str, task: Task) -> Iterator[Example]:
    example = read_cities(path, task)
    file = tsp.parse(path, (SECTION,), {"TYPE": ("TOUR",)})
    file.section(SECTION)  # raises if the section is missing
    file.check_dimension(len(example.inputs))
    for outputs in _tours(file, tsp.nodes_of(example).ids):
        yield example.replace(outputs=outputs, source=path)


def read_cities(path: str, task: Task) -> Example:
    """Return the cities of a `.tour` file from its `.tsp` or `.atsp` file.

    The `.tour` file need not exist.
    """
    (example,) = tsp.read(_cities_of(path), task)
    return example


def companions(path: str) -> list[str]:
    return [_cities_of(path)]


def _cities_of(path: str) -> str:
    """Return the path of the file with the cities. Raises InputError if there is none."""
    stem = Path(path).with_suffix("")
    stem = stem.with_suffix("") if stem.suffix == ".opt" else stem
    for cities in (f"{stem}.tsp", f"{stem}.atsp"):
        if exists(cities):
            return cities
    raise InputError(f"{path}: expected its cities in {stem}.tsp, which does not exist")


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    for example in examples:
        inputs, outputs = example.inputs, example.outputs
        if outputs is None:
            raise InputError(f"{example.source}: has no answer to write to a .tour file")
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


def _tours(file: tsp.TsplibFile, ids: list[int]) -> Iterator[Indices]:
    """Yield the tours `(n,)` of a file as indices of elements."""
    sources: dict[int, str] = {}  # for each city of the current tour, the source of its line
    source, is_first = file.path, True
    nodes = file.listed_nodes(SECTION, ids, "a city of the .tsp file")
    for k, place in chain(nodes, [(None, "")]):  # the last tour may lack its -1
        source = place or source
        if k is None:
            if not sources and not is_first:
                continue  # the end of the file, or a second -1
            missing = [city for i, city in enumerate(ids) if i not in sources]
            if missing:
                raise InputError(f"{source}: the tour leaves out city {missing[0]}")
            yield np.array(list(sources), np.int64)
            sources, is_first = {}, False
        elif k in sources:
            raise InputError(f"{source}: city {ids[k]} occurs twice, first at {sources[k]}")
        else:
            sources[k] = source
