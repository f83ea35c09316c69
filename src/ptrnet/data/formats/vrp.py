"""CVRPLIB's `.vrp` (Uchoa et al. 2017): the whole file is one instance of `cvrp`.

Distances are EUC_2D, rounded to the nearest whole number. The depot becomes element 0. The answer
to `NAME.vrp` is in `NAME.sol` in the same folder, if this file exists.
"""

from collections.abc import Iterator
from pathlib import Path

from ptrnet.data.formats import Capabilities, sol
from ptrnet.data.formats.parts import depots
from ptrnet.data.formats.parts.depots import write
from ptrnet.files import exists
from ptrnet.tasks.base import Task
from ptrnet.types import Example

__all__ = ["CAPABILITIES", "companions", "read", "write"]

CAPABILITIES = Capabilities(multiple=False, answers=False, task="cvrp", stdout_format="sol")


def read(path: str, task: Task) -> Iterator[Example]:
    (example,) = depots.read(path, task)
    for solution in companions(path):
        example = sol.with_routes(solution, example, task)
    yield example


def companions(path: str) -> list[str]:
    solution = str(Path(path).with_suffix(".sol"))
    return [solution] if exists(solution) else []
