"""Read mutated lines of text: either an example, or one clear error with file and line.

Nothing else is raised, no line takes more than a second or many megabytes; and what was read is
written and read again without a change.
"""

import resource
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Example
from tests.stress.mutations import mutated
from tests.stress.programs import one_line

LINES = 100  # lines of a case
SECONDS = 1.0  # processor seconds per line; reading a line takes a thousandth of this
MEGABYTES = 200.0  # megabytes by which the process may grow in a test
AGAIN_EVERY = 10  # one in so many examples is written and read again


class Text(NamedTuple):
    """A text format with the lines of a file. A case changes one of the lines."""

    extension: str
    task: str
    lines: tuple[bytes, ...]


TEXTS = (
    Text("txt", "hull", (b"0.5 0.25 0.125 1 -3e5 7 output 1 3 2 1\n",)),
    Text("txt", "delaunay", (b"0 0 1 0 0 1 1 1.5 output 1 2 3 <ENDT> 2 3 4\n",)),
    Text("txt", "sort", (b"0.7 0.649 0.921 0.01 output 4 2 1 3\n",)),
    Text("jsonl", "tsp", (b'{"inputs": [[0, 0], [3, 4.5], [1e3, 2]], "outputs": [0, 2, 1], '
                          b'"distance": "EUC_2D", "name": "a b"}\n',)),
    Text("jsonl", "delaunay", (b'{"inputs": [[0, 0], [1, 0], [0, 1]], "outputs": [[0, 1, 2]]}\n',)),
    Text("csv", "hull", (b"name,x,y\n", b'"a, b",0.5,1e3\n', b"c,2,-0.25\n", b'"d""e",7,7\n')),
    Text("tsp", "tsp", (b"NAME : a\n", b"TYPE : TSP\n", b"DIMENSION : 3\n",
                        b"EDGE_WEIGHT_TYPE : GEO\n", b"NODE_COORD_SECTION\n", b"1 10.30 20.15\n",
                        b"2 -4 5e1\n", b"3 7 7\n", b"EOF\n")),
    Text("tour", "tsp", (b"NAME : a\n", b"TYPE : TOUR\n", b"DIMENSION : 3\n", b"TOUR_SECTION\n",
                         b"1\n", b"3\n", b"2\n", b"-1\n", b"EOF\n")),
)  # fmt: skip


def _case(text: Text, before: float, rng: np.random.Generator, folder: Path) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    task, path = tasks.get(text.task), folder / f"a.{text.extension}"
    if text.extension == "tour":
        cities = next(t for t in TEXTS if t.extension == "tsp")
        (folder / "a.tsp").write_bytes(b"".join(cities.lines))
    for _ in range(LINES):
        lines = list(text.lines)
        k = rng.integers(len(lines))
        lines[k] = mutated(lines[k], rng)
        path.write_bytes(b"".join(lines))
        began = time.process_time()
        outcome = _outcome(path, task, rng.integers(AGAIN_EVERY) == 0)
        assert time.process_time() - began < SECONDS, "a line takes too long"
        outcomes[outcome] += 1
    assert _peak() - before < MEGABYTES, "lines take too much memory"
    return outcomes


def _outcome(path: Path, task: Task, again: bool) -> str:
    try:
        examples = list(formats.read(str(path), task))
    except InputError as error:
        message = one_line(error)
        if path.suffix in (".txt", ".jsonl") and not message.endswith(": holds no instance"):
            assert message.startswith(f"{path}:"), message
            assert message[len(f"{path}:")].isdigit(), message  # the line's number
        assert message.startswith(str(path.with_suffix(""))), message
        return "refused"
    assert all(np.isfinite(example.inputs).all() for example in examples)
    if again:
        copy = path.with_name(f"b{path.suffix}")
        if path.suffix == ".tour":
            copy.with_suffix(".tsp").write_bytes(path.with_suffix(".tsp").read_bytes())
        formats.write(str(copy), examples, task)
        for example, reread in zip(examples, formats.read(str(copy), task), strict=True):
            _check_equal(example, reread)
    return "read"


def _check_equal(example: Example, reread: Example) -> None:
    """Raise an error if an example changes when it is written and read again."""
    assert np.array_equal(example.inputs, reread.inputs)
    assert (example.outputs is None) == (reread.outputs is None)
    assert example.outputs is None or np.array_equal(example.outputs, reread.outputs)
    assert dict(example.extra) == dict(reread.extra)
    assert example.distance == reread.distance


def _peak() -> float:
    """Return the process's peak memory in megabytes; macOS counts it in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform == "darwin" else 2**10
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.extension}-{text.task}")
def test_a_changed_line_is_an_example_or_one_line_of_error(text, try_cases):
    try_cases(partial(_case, text, _peak()), 1250)
