"""Examples by the million: computed chunk by chunk in many processes, in memory or to a file.

A file of lines grows with the work. If the work is stopped, the same work started again goes on
after the last whole chunk.
"""

import json
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from functools import partial
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from ptrnet.data import formats
from ptrnet.data.bulk.pipeline import consumed_aside, read_ahead
from ptrnet.data.bulk.resumable import ResumableFile, can_resume
from ptrnet.data.formats.parts.lines import count_lines
from ptrnet.errors import InputError, KilledError, OutputError, PtrnetError
from ptrnet.files import checksum
from ptrnet.parallel import LOCAL, ordered_map
from ptrnet.progress import track
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices
from ptrnet.version import VERSION

CHUNK = 250  # examples that are computed and written together
# After these the same work can go on; any other error comes again until the input is mended.
_RESUMABLE = (KeyboardInterrupt, KilledError, OutputError)

Item = TypeVar("Item")


@dataclass(frozen=True)
class BulkWork(Generic[Item]):
    """Examples to compute, chunk by chunk. An item is what one chunk is computed from.

    Args:
        task: of the examples.
        activity: what is done, as the progress bar says it, such as "labelling".
        compute: makes the examples of an item, CHUNK of them or, of the last item, fewer; a
            function that other processes can import, or a partial of one.
        items_after: gives the items of all chunks after the first k examples, k a multiple of
            CHUNK or the number of all.
        resume_key: all that decides the examples beside task and activity, as JSON would give it
            back: work that was stopped goes on where it is the same. None where the examples cannot
            be computed a second time.
        total: how many examples there are; None where that is not known.
        is_checked: whether `items_after` refuses what the file of the answers could not hold, so
            that nothing is computed for it.
        upgrade: turns a key that a former version wrote into the one that this one would write;
            unchanged by default.
    """

    task: Task
    activity: str
    compute: Callable[[Item], list[Example]]
    items_after: Callable[[int], Iterable[Item]]
    resume_key: Mapping[str, Any] | None
    total: int | None
    is_checked: bool = False
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] = dict

    def examples(self, jobs: int, backend: str) -> Iterator[Example]:
        """All examples, computed as they are taken."""
        for chunk in ordered_map(self.compute, self.items_after(0), jobs, backend):
            yield from chunk


def run(
    work: BulkWork[Any], output: str | None, like: str | None, jobs: int, backend: str
) -> list[tuple[Floats, Indices]] | None:
    """Computes the examples, and writes them.

    Args:
        work: what is computed.
        output: the file; `-` is standard output.
        like: the file that the instances came from, if any; standard output has its format.
        jobs: processes; -1 for one a core. A single chunk is computed in this process.
        backend: where they run; see `ptrnet.parallel.ordered_map`.

    Returns:
        Inputs and outputs of each example where `output` is None, else None.

    Raises:
        InputError: at the first example that cannot be read, computed or written.
    """
    if output is not None and work.resume_key is not None and can_resume(output):
        _write_resumable(work, work.resume_key, output, jobs, backend)
        return None
    tally = Tally()
    examples = track(tally.of_examples(work.examples(jobs, backend)), work.activity, work.total)
    if output is None:
        pairs = [(e.inputs, e.outputs) for e in examples if e.outputs is not None]
        tally.report()
        return pairs
    if not work.is_checked:
        examples = formats.output_format(output, like).checked(examples, work.task)
    formats.write_checked(output, examples, work.task, like)
    tally.report()
    return None


def _write_resumable(
    work: BulkWork[Any], resume_key: Mapping[str, Any], output: str, jobs: int, backend: str
) -> None:
    """Writes the examples to a file of lines, or goes on where that was stopped."""
    task = work.task
    settings = json.loads(json.dumps(asdict(task)))  # as they will be read again
    resume_key = {
        "ptrnet": VERSION,
        "task": task.name,
        **settings,
        "command": work.activity,
        **resume_key,
    }
    # A former version had none of the settings and options that were added since.
    defaults = {"strict": False, **{f.name: f.default for f in fields(task)}}

    def upgrade(former: dict[str, Any]) -> dict[str, Any]:
        return work.upgrade({**defaults, **former})

    tally = Tally()
    with ResumableFile(Path(output), resume_key, CHUNK, upgrade) as file:
        done = file.trim(work.total)
        if done:
            print(f"going on after {done:,} examples in {file.lines_path}", file=sys.stderr)
        encode = partial(_encoded_lines, task, file.format.extension)

        def write(chunks: Iterable[tuple[bytes, int]]) -> Generator[int]:
            return file.append(tally.of_chunks(chunks))

        compute = partial(_computed_lines, work.compute, encode)
        items = work.items_after(done)
        if jobs == 1 and backend == LOCAL:
            counts = _written_aside(map(compute, items), write)
        else:
            counts = write(ordered_map(compute, read_ahead(items), jobs, backend))
        try:
            # Nobody draws or writes any more when it is said what was written.
            with closing(counts):
                lines = (None for count in counts for _ in range(count))
                for _ in track(lines, work.activity, work.total, done):  # counts line by line
                    pass
            file.finish(task)
        except (PtrnetError, KeyboardInterrupt) as error:
            if done or (file.appended and isinstance(error, _RESUMABLE)):
                print(
                    f"kept in {file.lines_path}: the same command goes on from there",
                    file=sys.stderr,
                )
            else:
                file.discard()
            raise
    tally.report()


def _written_aside(
    chunks: Iterable[tuple[bytes, int]],
    write: Callable[[Iterable[tuple[bytes, int]]], Generator[int]],
) -> Generator[int]:
    """How many lines each chunk has, which is computed in this thread: an interrupt reaches it.

    Another thread writes the chunks, and waits for the disk.
    """

    def write_all(computed: Iterator[tuple[bytes, int]]) -> None:
        for _ in write(computed):
            pass

    with closing(consumed_aside(chunks, write_all)) as computed_chunks:
        for lines, _ in computed_chunks:
            yield lines.count(b"\n")


class Tally:
    """The number of answers that are not proved, where their labeller promises a proof."""

    def __init__(self) -> None:
        self.unproved = 0

    def of_examples(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Gives the examples on, and counts those whose answers are not proved."""
        for example in examples:
            self.unproved += _is_unproved(example)
            yield example

    def of_chunks(self, chunks: Iterable[tuple[bytes, int]]) -> Iterator[bytes]:
        """Gives the lines of each chunk on, and adds up how many answers are not proved."""
        for lines, unproved in chunks:
            self.unproved += unproved
            yield lines

    def report(self) -> None:
        """Prints the count, where it is not 0, on standard error."""
        if self.unproved:
            answers = "1 answer is" if self.unproved == 1 else f"{self.unproved:,} answers are"
            print(
                f'{answers} the best that was found, not proved: "proved": false in .jsonl and '
                ".parquet; --strict refuses them",
                file=sys.stderr,
            )


def _is_unproved(example: Example) -> bool:
    return example.extra.get("proved") is False


def _encoded_lines(task: Task, extension: str, examples: list[Example]) -> tuple[bytes, int]:
    """The lines of the examples, and how many of their answers are not proved.

    Takes the extension of a format, not the format: its module cannot be sent to other processes.
    """
    text = StringIO()
    formats.get(extension).write(text, examples, task)
    return text.getvalue().encode(), sum(map(_is_unproved, examples))


def _computed_lines(
    compute: Callable[[Item], list[Example]],
    encode: Callable[[list[Example]], tuple[bytes, int]],
    item: Item,
) -> tuple[bytes, int]:
    """The lines of the examples of one item, as `_encoded_lines` gives them."""
    return encode(compute(item))


def content_of(path: Path) -> dict[str, Any]:
    """What a resume key says of a file that is worked on: where it is, and its content now.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return {"file": str(path.resolve()), "sha256": checksum(path)}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def count_instances(path: str) -> int | None:
    """How many instances a file has, for a progress bar: its lines; None for a binary file."""
    capabilities = formats.format_of(path).capabilities
    if not capabilities.multiple:
        return 1
    return None if capabilities.binary else count_lines(path)


def chunks(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """The examples in lists of CHUNK, the last of fewer."""
    rest = iter(examples)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk
