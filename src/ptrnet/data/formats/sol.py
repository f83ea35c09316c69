"""CVRPLIB's `.sol`: routes for the `.vrp` file in the same folder, and their total length.

A line `Route #1: 4 2 7` lists the customers of a route. Customers are numbered from 1, in the order
of the `.vrp` file without the depot. `Cost 1234` is the total length. We read `NAME.sol` together
with `NAME.vrp`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from ptrnet.data import checks
from ptrnet.data.cells import parse_index
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import depots
from ptrnet.data.formats.parts.lines import filled_lines
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Indices

CAPABILITIES = Capabilities(multiple=False, task="cvrp")


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    (instance,) = companions(path)
    (example,) = depots.read(instance, task)
    yield example.replace(outputs=read_routes(path, len(example.inputs)), source=path)


def companions(path: str) -> list[str]:
    """See `ptrnet.data.formats`."""
    return [str(Path(path).with_suffix(".vrp"))]


def read_routes(path: str, n: int) -> Indices:
    """Return the customers of all routes, with a 0 between two routes.

    Args:
        path: the `.sol` file.
        n: the number of elements of the instance, depot included.
    """
    outputs: list[int] = []
    for source, text in filled_lines(path):
        label, colon, customers = text.partition(":")
        if not colon or not label.strip().lower().startswith("route"):
            continue
        outputs += [0] * bool(outputs)
        for k, word in enumerate(customers.split(), 1):
            customer = parse_index(word, f"{source}: customer {k}")
            if not 0 < customer < n:
                raise InputError(f"{source}: customer {k}: expected 1 to {n - 1}, got {customer}")
            outputs.append(customer)
    return np.array(outputs, np.int64)


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`. Raises InputError for an example without valid routes."""
    for example in examples:
        if example.outputs is None:
            raise InputError(f"{example.source}: has no answer to write to a .sol file")
        checks.check_feasible([example], task)
        routes = np.split(example.outputs, np.flatnonzero(example.outputs == 0))
        for number, route in enumerate(routes, 1):
            stream.write(f"Route #{number}: {' '.join(map(str, route[route > 0]))}\n")
        stream.write(f"Cost {task.answer_stats(example)['cost']:.15g}\n")
