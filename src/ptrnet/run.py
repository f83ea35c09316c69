"""The one road of every verb: read chunks, map them, and give the results to a sink.

`solve`, `label`, `evaluate` and `generate` all call `run`. A source has the chunks: of a file, a
pipe, a table or values in memory. A function maps a chunk to a dataset, in this process or in many
(`ptrnet.parallel`). A sink takes the datasets in order: `Memory` keeps them, and `Whole` gives all
rows to a function at the end. `ptrnet.sinks` has the sinks that write lines.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from ptrnet.parallel import LOCAL, check_processes, ordered_map
from ptrnet.progress import Bar
from ptrnet.types import Dataset

# Rows of a chunk. If a run is stopped, chunks that are not written yet are lost. `generate` has a
# random generator for each chunk, so another CHUNK would change the examples that a seed gives.
CHUNK = 250

Result = TypeVar("Result")


class Source(NamedTuple):
    """The input of a run."""

    # The arguments of the run's function: datasets, of CHUNK rows unless a caller needs another
    # number, or the index of each chunk.
    chunks: Iterable[Any]
    num_rows: int | None  # number of rows; None if unknown
    # Everything about the input that decides the result, as JSON. None if a stopped run cannot be
    # resumed: the input cannot be read again (values in memory, standard input, a pipe), or the
    # output cannot be written in parts (`ptrnet.sinks.can_resume`).
    key: Mapping[str, Any] | None
    path: str | None = None  # path of the file; None for input in memory


class Part(NamedTuple):
    """The result of a chunk."""

    number: int
    rows: int
    unproved: int  # answers without a proof, although their labeller promises a proof
    encoded: Any


def _unchanged(data: Dataset) -> Dataset:
    return data


class Sink(ABC, Generic[Result]):
    """Takes the results of a run."""

    # What to do with a result in the process that computed it, before it is sent here.
    encode: Callable[[Dataset], Any] = staticmethod(_unchanged)
    unproved: int = 0  # the number of answers without a proof in all parts
    # Whether the sink shows each result at once, because more input may never come.
    is_live: bool = False

    def opened(self) -> AbstractContextManager[Mapping[int, int]]:
        """Prepare for `add`. Yields the numbers of rows of finished chunks, by chunk number."""
        return nullcontext({})

    @abstractmethod
    def add(self, part: Part) -> None:
        """Take the result of a chunk."""

    @abstractmethod
    def result(self) -> Result:
        """Return what the run returns, after the last chunk."""


def run(
    source: Source,
    function: Callable[[Any], Dataset],
    sink: Sink[Result],
    activity: str = "",
    jobs: int = 1,
    backend: str = LOCAL,
) -> Result:
    """Map each chunk of a source by a function, and give the results to a sink, in order.

    Args:
        function: maps a chunk to a dataset. Other processes must be able to import it.
        sink: what takes the datasets.
        activity: text of the progress bar, such as "labelling". Without a text, there is no bar.
        jobs: number of processes; -1 for one per core.
        backend: where the processes run, see `ptrnet.parallel.ordered_map`.

    Returns:
        The sink's result.

    Raises:
        InputError: an example cannot be used or written, or the output cannot be written. Or
            `OUTPUT.partial/` holds an unfinished run with another key, or another process uses it.

    Examples:
        >>> function = partial(label_dataset, task, "exact")
        >>> run(Source(data.chunks(CHUNK), len(data), None), function, Memory(), "labelling")
    """
    check_processes(jobs, backend)
    compute = partial(_compute, function, sink.encode)
    with sink.opened() as done:
        todo = (item for item in enumerate(source.chunks) if item[0] not in done)
        with Bar(activity, source.num_rows, sum(done.values())) as bar:
            for part in ordered_map(compute, todo, jobs, backend):
                sink.unproved += part.unproved
                sink.add(part)
                bar.add(part.rows)
        return sink.result()


def _compute(
    function: Callable[[Any], Dataset], encode: Callable[[Dataset], Any], item: tuple[int, Any]
) -> Part:
    number, chunk = item
    data = function(chunk)
    unproved = sum(extra.get("proved") is False for extra in data.columns.get("extra", ()))
    return Part(number, len(data), unproved, encode(data))


class Whole(Sink[Result]):
    """Keep the datasets. Return what `finish`, such as a writer of files, makes of all rows."""

    def __init__(self, finish: Callable[[Dataset], Result]) -> None:
        self._finish, self._parts = finish, list[Dataset]()

    def add(self, part: Part) -> None:
        self._parts.append(part.encoded)

    def result(self) -> Result:
        return self._finish(Dataset.join(self._parts))


class Memory(Whole[Dataset]):
    """Return all rows as a dataset."""

    def __init__(self) -> None:
        super().__init__(_unchanged)


def report_unproved(count: int) -> None:
    """If there are unproved answers, print their number on standard error."""
    if count:
        answers = "1 answer is" if count == 1 else f"{count:,} answers are"
        print(
            f"{answers} the best that was found, not proved; .jsonl and .parquet files mark such "
            'answers with "proved": false, and --strict refuses them',
            file=sys.stderr,
        )
