"""Sinks of `ptrnet.run.run` for files, the terminal and pipes.

- `Lines` writes lines to a file or to standard output, and publishes them at the end.
- `Printed` prints the lines of each chunk immediately, for pipes.
- `Resumable` writes lines to a file, and a stopped run can be resumed.
- `Shown` is the base of sinks that show answers besides: a picture, a JSON document.

While OUTPUT is computed, `Resumable` keeps a folder `OUTPUT.partial/` next to it, with the run's
key and the finished chunks. The key (`job.json`) is everything that decides the result. Each chunk
is a file of lines. The file's name is `NUMBER-UNPROVED-CHECKSUM.EXTENSION`, where UNPROVED is the
number of answers without a proof. If the same run is started again, it skips a chunk if the content
of its file has the checksum that the name says. At the end the chunks are joined, and the folder is
removed.
"""

import json
import math
import shutil
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

from ptrnet import __version__, tasks
from ptrnet.data import formats
from ptrnet.data.dataset import chunks_of
from ptrnet.errors import InputError, KilledError, OutputError, short
from ptrnet.files import (
    atomic_path,
    check_writable,
    checksum,
    locked,
    named_failure,
    to_standard_output,
)
from ptrnet.run import CHUNK, Memory, Part, Result, Sink, Source, Whole
from ptrnet.tasks.base import Task, with_ends
from ptrnet.types import Dataset, Ends

KEY_FILE = "job.json"
_DIGITS = 32  # hexadecimal digits of a chunk's SHA-256 in its file name: 128 bits are enough


class Lines(Sink[None]):
    """Write lines to a file or to standard output ("-"), which shows them after the last one."""

    def __init__(self, output: str, target: formats.Format, task: Task) -> None:
        self.output, self.target = output, target
        # We pass the format's extension, because a module cannot be sent to another process.
        self.encode = partial(_lines_of, task, target.extension)

    @contextmanager
    def opened(self) -> Iterator[Mapping[int, int]]:
        folder = None if self.output == "-" else str(Path(self.output).resolve().parent)
        with SpooledTemporaryFile(formats.IN_MEMORY, dir=folder) as self._stream:
            yield {}

    def add(self, part: Part) -> None:
        with named_failure(f"{self.output}: cannot be written", OutputError):
            self._stream.write(part.encoded)

    def result(self) -> None:
        self._stream.seek(0)
        if self.output == "-":
            to_standard_output(line.decode() for line in self._stream)
            return
        with atomic_path(Path(self.output)) as temporary, temporary.open("wb") as stream:
            shutil.copyfileobj(self._stream, stream)


class Printed(Sink[None]):
    """Print the lines of each chunk as soon as it is computed, in the format of standard input."""

    is_live = True

    def __init__(self, task: Task) -> None:
        self.encode = partial(_lines_of, task, formats.output_format("-", "-").extension)

    def add(self, part: Part) -> None:
        to_standard_output([part.encoded.decode()])

    def result(self) -> None:
        """Return nothing, because everything is printed."""


class Shown(Sink[Result]):
    """Base class of sinks that show something of the results, and pass them on to another sink.

    The result is that of the other sink, `inner`. `pick` returns what `show` takes of each dataset,
    in the process that computed it.
    """

    def __init__(self, inner: Sink[Result], pick: Callable[[Dataset], Any]) -> None:
        self.inner, self.encode = inner, partial(_both, inner.encode, pick)

    def opened(self) -> AbstractContextManager[Mapping[int, int]]:
        return self.inner.opened()

    def add(self, part: Part) -> None:
        encoded, picked = part.encoded
        self.inner.add(part._replace(encoded=encoded))
        self.show(picked)

    @abstractmethod
    def show(self, picked: Any) -> None:
        """Take what was picked of the next dataset."""

    def result(self) -> Result:
        return self.inner.result()


def _both(
    first: Callable[[Dataset], Any], second: Callable[[Dataset], Any], data: Dataset
) -> tuple[Any, Any]:
    return first(data), second(data)


class Doubts(Shown[Result]):
    """Name on standard error the instances whose answer has a probability below `least`."""

    def __init__(self, inner: Sink[Result], least: float) -> None:
        super().__init__(inner, partial(_rows_below, least))
        self._doubtful, self._count = list[tuple[int, str, float]](), 0

    def show(self, picked: tuple[int, list[tuple[int, str, float]]]) -> None:
        rows, doubtful = picked
        self._doubtful += [(self._count + row, source, p) for row, source, p in doubtful]
        self._count += rows

    def result(self) -> Result:
        result = self.inner.result()
        for number, source, probability in self._doubtful:
            name = source or f"instance {number}"
            print(f"{name}: probability {probability:.3f}: check this answer", file=sys.stderr)
        return result


def _rows_below(least: float, data: Dataset) -> tuple[int, list[tuple[int, str, float]]]:
    """Return the number of rows, and row, source and probability of each answer below `least`."""
    sources, log_probs = data.column("source"), data.column("log_prob")
    found = [
        (row, source, math.exp(log_prob))
        for row, (source, log_prob) in enumerate(zip(sources, log_probs, strict=True))
        if log_prob is not None and math.exp(log_prob) < least
    ]
    return len(data), found


class Resumable(Sink[None]):
    """Write lines to a file. After a stop, the same run continues after the finished chunks.

    Chunks of a binary format cannot be joined, so we keep lines of JSON, and convert them at the
    end. The key has everything that decides the result, as JSON.
    """

    def __init__(
        self, output: str, target: formats.Format, task: Task, key: Mapping[str, Any]
    ) -> None:
        self.output, self.target, self.task, self.key = output, target, task, key
        self.extension = "jsonl" if target.capabilities.binary else target.extension
        self.encode = partial(_lines_of, task, self.extension)

    @contextmanager
    def opened(self) -> Iterator[Mapping[int, int]]:
        with _claimed(self.output, self.key) as self._folder:
            done, self.unproved = _finished(self._folder, self.extension)
            yield done

    def add(self, part: Part) -> None:
        name = _chunk_name(part.number, part.unproved, part.encoded, self.extension)
        with named_failure(f"{self.output}: cannot be written", OutputError):
            _write_chunk(self._folder / name, part.encoded)

    def result(self) -> None:
        with named_failure(f"{self.output}: cannot be written", OutputError):
            _join(self._folder, self.output, self.task, self.target.capabilities.binary)


def can_resume(output: str | None) -> bool:
    """Whether a stopped run that writes to `output` may be resumed. None: it writes no file."""
    if output in (None, "-"):
        return False
    can = formats.format_of(output).capabilities
    return can.multiple and not can.document


def open_instances(
    task: Task, path: str, output: str | None, ends: Ends, whole: bool = False, size: int = CHUNK
) -> Source:
    """Return a source of a file's instances, which are checked while they are read.

    Args:
        path: the file; "-" is standard input.
        output: the file for the answers; "-" is standard output, None only keeps them in memory.
        ends: the ends of all tours.
        whole: whether all answers are needed at the end, so that no run can be resumed.
        size: rows of a chunk.

    Raises:
        InputError: the file cannot be read, or the output is the file itself, or cannot hold the
            instances with their answers.
    """
    examples = with_ends(formats.read_instances(path, task), task, ends)
    if output is not None:
        formats.check_not_overwritten(path, output)
        examples = formats.output_format(output, path).checked(examples, task)
    return file_source(path, chunks_of(examples, size), None if whole else output)


def file_source(path: str, chunks: Iterable[Dataset], output: str | None) -> Source:
    """Return the source of a run that reads a file. It is hashed only if the run can be resumed.

    Raises:
        InputError: the file cannot be read.
    """
    if path != "-":
        formats.check_input(path)
    if path == "-" or not Path(path).is_file():
        return Source(chunks, None, None, path)
    key = None
    if can_resume(output):
        key = {"file": str(Path(path).resolve()), "sha256": formats.content_checksum(path)}
    return Source(chunks, formats.count_instances(path), key, path)


def sink_for(
    output: str | None, source: Source, task: Task, activity: str, key: Mapping[str, Any]
) -> Sink[Any]:
    """Return the sink for a file, or for the memory.

    Args:
        output: the file; "-" is standard output, None the memory. Standard output has the format of
            the source's file. If the source has no path, the format is `task.facts.stdout_format`.
        source: the source. If it has a key, the run can be resumed.
        activity: the verb of the run, a part of its key.
        key: everything else that decides the result, as JSON: options, the weights' checksum.

    Raises:
        InputError: the file cannot be written, or its format cannot hold answers or serves another
            task.
    """
    if output is None:
        return Memory()
    like = source.path or f"drawn.{task.facts.stdout_format}"
    target = formats.output_format(output, like)
    formats.check_output(output, task)
    if target.capabilities.document and source.path is None:
        raise InputError(
            f"{output}: is written only from the document that has the pages; write to .jsonl"
        )
    if source.key is not None and can_resume(output):
        own = {"ptrnet": __version__, "task": task.name, "command": activity}
        own |= tasks.settings_of(task)
        return Resumable(output, target, task, {**own, **key, **source.key})
    if not target.capabilities.multiple or target.capabilities.binary:
        return Whole(partial(formats.write, output, task=task, like=source.path))
    return Lines(output, target, task)


def _lines_of(task: Task, extension: str, data: Dataset) -> bytes:
    text = StringIO()
    formats.get(extension).module.write(text, data, task)
    return text.getvalue().encode()


@contextmanager
def _claimed(output: str, key: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the folder of a run's chunks, locked against other runs. Remove the folder on success.

    After an interrupt, a killed worker process or a full disk, a folder with chunks stays, so that
    it can be resumed. Any other error would occur again. After such an error, a folder that
    this run created is removed, and the folder of an earlier run is kept.
    """
    path = Path(output)
    check_writable(path)
    folder = path.with_name(f"{path.name}.partial")
    with ExitStack() as stack:
        with named_failure(f"{output}: cannot be written", OutputError):
            folder.mkdir(exist_ok=True)
            stack.enter_context(locked(folder, wait=False))
            is_new = not (folder / KEY_FILE).exists()
            _claim(folder, key, is_new)
        try:
            yield folder
        except BaseException as error:
            is_stop = isinstance(error, KeyboardInterrupt | KilledError | OSError | OutputError)
            if _chunk_files(folder) and (is_stop or not is_new):
                print(
                    f"the finished part is kept in {folder}; the same command continues from there",
                    file=sys.stderr,
                )
            elif is_new:
                shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)


def _claim(folder: Path, key: Mapping[str, Any], is_new: bool) -> None:
    """Write the key of a new job, or raise InputError if the folder belongs to another job."""
    text = json.dumps(key, indent=1) + "\n"
    if is_new:
        with atomic_path(folder / KEY_FILE) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return
    key = json.loads(text)  # converts tuples to lists, as in the file
    try:
        former = json.loads((folder / KEY_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        former = None
    if not isinstance(former, dict):
        raise InputError(f"{folder / KEY_FILE}: not readable; delete {folder}")
    for name in dict.fromkeys([*key, *former]):
        if former.get(name) != key.get(name):
            raise InputError(
                f"{folder}: holds an unfinished job with other options ({name} was "
                f"{short(former.get(name), 100)}, now {short(key.get(name), 100)}); finish that "
                "job, or delete the folder"
            )


def _chunk_files(folder: Path) -> dict[int, Path]:
    """Return the chunk files by number."""
    files = folder.glob("*-*.*")
    return {int(file.name.partition("-")[0]): file for file in files}


def _finished(folder: Path, extension: str) -> tuple[dict[int, int], int]:
    """Return the number of rows of each finished chunk, and their total of unproved answers.

    Remove damaged files.
    """
    done, total = {}, 0
    for number, file in _chunk_files(folder).items():
        lines, unproved = file.read_bytes(), file.name.split("-")[1]
        if file.name == _chunk_name(number, unproved, lines, extension):
            done[number] = lines.count(b"\n")
            total += int(unproved)
        else:
            print(
                f"{file}: incomplete or damaged; its examples are computed again", file=sys.stderr
            )
            file.unlink()
    if done:
        print(f"resuming after {sum(done.values()):,} examples in {folder}", file=sys.stderr)
    return done, total


def _chunk_name(number: int, unproved: int | str, lines: bytes, extension: str) -> str:
    """Return a chunk's name, whose checksum tells a later run whether the file is complete."""
    return f"{number:06}-{unproved}-{checksum(lines)[:_DIGITS]}.{extension}"


def _write_chunk(path: Path, lines: bytes) -> None:
    try:
        path.write_bytes(lines)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _join(folder: Path, output: str, task: Task, is_binary: bool) -> None:
    """Write the output: the joined lines of the chunks, or their examples in a binary format."""
    files = [file for _, file in sorted(_chunk_files(folder).items())]
    if is_binary:
        read = formats.get("jsonl").module.read_answered
        rows = enumerate((e for file in files for e in read(str(file), task)), 1)
        # Messages must not name the files of chunks, which the user did not write.
        examples = (example.replace(source=f"{output}: row {k}") for k, example in rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the instances were read, and warned of, before
            formats.write(output, examples, task)
    else:
        with atomic_path(Path(output)) as temporary, temporary.open("wb") as stream:
            for file in files:
                with file.open("rb") as lines:
                    shutil.copyfileobj(lines, stream)
