"""CVRPLIB's `.sol`: routes for the `.vrp` file in the same folder, and their total length.

A line `Route #1: 4 2 7` lists the customers of a route. Customers are numbered from 1, in the order
of the `.vrp` file without the depot. `Cost 1234` is the total length. We read `NAME.sol` together
with `NAME.vrp`.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from ptrnet.data import checks
from ptrnet.data.cells import is_number, parse_index
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import depots, filled_lines
from ptrnet.errors import InputError, warn_ambiguous
from ptrnet.metrics import summary
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CAPABILITIES = Capabilities(multiple=False, task="cvrp")


def read(path: str, task: Task) -> Iterator[Example]:
    (instance,) = companions(path)
    (example,) = depots.read(instance, task)
    yield with_routes(path, example, task).replace(source=path)


def companions(path: str) -> list[str]:
    return [str(Path(path).with_suffix(".vrp"))]


def with_routes(path: str, example: Example, task: Task) -> Example:
    """Return an instance of `cvrp` with the routes of a `.sol` file, a 0 between two routes.

    Raises:
        InputError: the file is malformed, or the routes are not an answer to the instance.

    Warns:
        AmbiguousInputWarning: the file's cost is not the length of the routes.
    """
    outputs: list[int] = []
    cost: tuple[str, str] | None = None  # the source of its line, and what follows the word
    n = len(example.inputs)
    for source, text in filled_lines(path):
        if found := re.fullmatch(r"cost\b[\s:=]*(.*)", text.strip(), re.IGNORECASE):
            cost = source, found[1]
        label, colon, customers = text.partition(":")
        if not colon or not label.strip().lower().startswith("route"):
            continue
        outputs += [0] * bool(outputs)
        for k, word in enumerate(customers.split(), 1):
            customer = parse_index(word, f"{source}: customer {k}")
            if not 0 < customer < n:
                raise InputError(f"{source}: customer {k}: expected 1 to {n - 1}, got {customer}")
            outputs.append(customer)
    answered = example.replace(outputs=np.array(outputs, np.int64))
    checks.check_feasible([answered.replace(source=path)], task)
    if cost:
        _check_cost(*cost, answered, task)
    return answered


def _check_cost(source: str, written: str, answered: Example, task: Task) -> None:
    """Warn if the cost in a file is not the length of the routes.

    Some instances have published costs without rounding, such as those of Christofides et al.
    """
    unrounded = answered.inputs.copy()
    unrounded[:, -1] = 0
    rounded, exact = (
        summary.answer_stats(task, answered.replace(inputs=inputs))["cost"]
        for inputs in (answered.inputs, unrounded)
    )
    text = f"the routes cost {rounded:.15g}, or {exact:.2f} if distances are not rounded"
    if not is_number(written) or abs(float(written) - rounded) > 1e-9 * rounded:
        warn_ambiguous(f"{source}: Cost {written[:40]}: {text}")


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    for example in examples:
        if example.outputs is None:
            raise InputError(f"{example.source}: has no answer to write to a .sol file")
        checks.check_feasible([example], task)
        routes = np.split(example.outputs, np.flatnonzero(example.outputs == 0))
        for number, route in enumerate(routes, 1):
            stream.write(f"Route #{number}: {' '.join(map(str, route[route > 0]))}\n")
        stream.write(f"Cost {summary.answer_stats(task, example)['cost']:.15g}\n")
