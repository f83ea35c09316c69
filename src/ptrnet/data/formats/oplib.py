"""OPLib's `.oplib` (Kobeaga et al. 2018): the whole file is one instance of `orienteering`.

Distances are EUC_2D, rounded to the nearest whole number. The depot becomes element 0. The format
has no answers; write them to `.jsonl`.
"""

from collections.abc import Iterable, Iterator
from typing import TextIO

from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import depots
from ptrnet.problems.orienteering import Orienteering
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CAPABILITIES = Capabilities(
    multiple=False, answers=False, task="orienteering", stdout_format="jsonl"
)


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    assert isinstance(task, Orienteering)
    yield depots.read(path, task, depots.OP)


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    assert isinstance(task, Orienteering)
    depots.write(stream, examples, task, depots.OP)
