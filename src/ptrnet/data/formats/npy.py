"""NumPy's `.npy`: a square matrix of distances, one instance of task `tsp`.

Row i has the distances from element i to all elements. The diagonal is ignored.
"""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np

from ptrnet.data import checks
from ptrnet.data.formats import Capabilities
from ptrnet.errors import InputError
from ptrnet.geometry.distances import EXPLICIT
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CAPABILITIES = Capabilities(
    multiple=False,
    answers=False,
    distances=(EXPLICIT,),
    task="tsp",
    binary=True,
    stdout_format="tour",
)


def read(path: str, task: Task) -> Iterator[Example]:
    try:
        values = np.load(path, allow_pickle=False)
    except OSError as error:
        reason = error.strerror or "not a .npy file, or a damaged one"
        raise InputError(f"{path}: cannot be read: {reason}") from None
    except (ValueError, EOFError):
        raise InputError(f"{path}: not a .npy file of numbers, or a damaged one") from None
    if not isinstance(values, np.ndarray):
        raise InputError(f"{path}: expected one array, got a .npz file of several")
    yield Example(checks.check_matrix(values, task, path), source=path, distance=EXPLICIT)


def write(stream: BinaryIO, examples: Iterable[Example], task: Task) -> None:
    for example in examples:
        np.save(stream, example.inputs)
