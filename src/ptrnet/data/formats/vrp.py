"""CVRPLIB's `.vrp` (Uchoa et al. 2017): the whole file is one instance of `cvrp`.

Distances are EUC_2D, rounded to the nearest whole number. The depot becomes element 0. If
`NAME.sol` exists in the same folder, its routes are the answer.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from ptrnet.data import checks
from ptrnet.data.formats import Capabilities, sol
from ptrnet.data.formats.parts import depots
from ptrnet.files import exists
from ptrnet.problems.cvrp import Cvrp
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CAPABILITIES = Capabilities(multiple=False, answers=False, task="cvrp", stdout_format="sol")


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    assert isinstance(task, Cvrp)
    example = depots.read(path, task, depots.CVRP)
    solution = str(Path(path).with_suffix(".sol"))
    if exists(solution):
        outputs = sol.read_routes(solution, len(example.inputs))
        checks.check_feasible([example.replace(outputs=outputs, source=solution)], task)
        example = example.replace(outputs=outputs)
    yield example


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    assert isinstance(task, Cvrp)
    depots.write(stream, examples, task, depots.CVRP)
