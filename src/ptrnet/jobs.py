"""Jobs: apply a function to many chunks of examples, in many processes, and resume after a stop.

While OUTPUT is computed, a folder `OUTPUT.partial/` next to it holds the job's key and the finished
chunks. The key (`job.json`) is everything that decides the result. Each chunk is a file of lines.
The file's name is `NUMBER-UNPROVED-CHECKSUM.EXTENSION`, where UNPROVED is the number of answers
without a proof. If the same job is started again, it skips a chunk if the content of its file has
the checksum that the name says. At the end the chunks are joined, and the folder is removed.
"""

import json
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from ptrnet.data import formats
from ptrnet.data.dataset import Dataset
from ptrnet.errors import InputError, KilledError, OutputError, short
from ptrnet.files import atomic_path, check_writable, checksum, locked, to_standard_output
from ptrnet.parallel import LOCAL, ordered_map
from ptrnet.progress import Bar
from ptrnet.settings import to_mapping
from ptrnet.tasks.base import Task
from ptrnet.version import VERSION

# Rows of a chunk. If a job is stopped, chunks that are not written yet are lost. `generate` has a
# random generator for each chunk, so another CHUNK would change the examples that a seed gives.
CHUNK = 250
KEY = "job.json"
_DIGITS = 32  # hexadecimal digits of a chunk's SHA-256 in its file name: 128 bits are enough


class Source(NamedTuple):
    """The input of a job.

    Args:
        chunks: the arguments of the job's function: datasets of CHUNK rows, or the index of
            each chunk.
        num_rows: number of rows; None if unknown.
        key: everything about the input that decides the result, as JSON. None for input in
            memory, and for standard input and pipes, which cannot be read again. If the key is
            None, a stopped job cannot be resumed, and its finished chunks are removed.
        path: path of the file; None for input in memory.
    """

    chunks: Iterable[Any]
    num_rows: int | None
    key: Mapping[str, Any] | None
    path: str | None = None


def file_source(path: str, chunks: Iterable[Dataset]) -> Source:
    """Return the source of a job that reads a file.

    Raises:
        InputError: the file cannot be read.
    """
    if path == "-" or not Path(path).is_file():
        return Source(chunks, None, None, path)
    key = {"file": str(Path(path).resolve()), "sha256": formats.content_checksum(path)}
    return Source(chunks, formats.count_instances(path), key, path)


def map_chunks(
    function: Callable[[Any], Dataset], source: Source, activity: str, jobs: int, backend: str
) -> Iterator[Dataset]:
    """Apply `function` to each chunk, and yield the results in order. A progress bar counts rows.

    Args:
        function: maps a chunk to a dataset. Other processes must be able to import it.
        source: the chunks.
        activity: text of the bar, such as "labelling".
        jobs: number of processes; -1 for one per core.
        backend: where the processes run, see `ptrnet.parallel.ordered_map`.
    """
    with Bar(activity, source.num_rows) as bar:
        for data in ordered_map(function, source.chunks, jobs, backend):
            bar.add(len(data))
            yield data


def write_chunks(
    function: Callable[[Any], Dataset],
    source: Source,
    task: Task,
    output: str,
    activity: str,
    key: Mapping[str, Any],
    jobs: int = 1,
    backend: str = LOCAL,
) -> int:
    """Apply `function` to each chunk, and write the resulting examples to a file.

    Args:
        function: maps a chunk to a dataset. Other processes must be able to import it.
        source: the chunks.
        task: the task of the examples.
        output: the file, or "-" for standard output. Standard output has the format of the
            source's file. If the source has no path, the format is `task.stdout_format`.
        activity: text of the progress bar, such as "labelling".
        key: everything else that decides the result, as JSON: options, the weights' checksum.
        jobs: number of processes; -1 for one per core.
        backend: where the processes run, see `ptrnet.parallel.ordered_map`.

    Returns:
        The number of answers that are not proved, although their labeller promises a proof.

    Raises:
        InputError: an example cannot be used or written, or `output` cannot be written. Or
            `OUTPUT.partial/` holds an unfinished job with another key, or another process uses it.

    Examples:
        >>> function = partial(label_dataset, task, "exact")
        >>> source = Source(data.chunks(CHUNK), len(data), {})
        >>> write_chunks(function, source, task, "tours.jsonl", "labelling", {})
        0
    """
    target = formats.output_format(output, source.path or f"drawn.{task.stdout_format}")
    if not target.capabilities.multiple or (output == "-" and target.capabilities.binary):
        data = list(ordered_map(function, source.chunks, jobs, backend))
        examples = [example for chunk in data for example in chunk]
        formats.write(output, examples, task, source.path)
        return sum(map(num_unproved, data))
    is_binary = target.capabilities.binary
    # Chunks of a binary format cannot be joined, so we keep lines and convert them at the end.
    lines_format = formats.get("jsonl") if is_binary else target
    compute = partial(_lines_of, function, task, lines_format.extension)
    key = {"ptrnet": VERSION, "task": task.name, **to_mapping(task), "command": activity, **key}
    with _claimed(output, key, source) as folder:
        done, unproved = _finished(folder, lines_format.extension)
        todo = (item for item in enumerate(source.chunks) if item[0] not in done)
        with Bar(activity, source.num_rows, sum(done.values())) as bar:
            for number, lines, count in ordered_map(compute, todo, jobs, backend):
                with _writing(output):
                    _write_chunk(folder, number, count, lines, lines_format.extension)
                bar.add(lines.count(b"\n"))
                unproved += count
        with _writing(output):
            _join(folder, output, task, target if is_binary else None)
    return unproved


def report_unproved(count: int) -> None:
    """If there are unproved answers, print their number on standard error."""
    if count:
        answers = "1 answer is" if count == 1 else f"{count:,} answers are"
        print(
            f"{answers} the best that was found, not proved; .jsonl and .parquet files mark such "
            'answers with "proved": false, and --strict refuses them',
            file=sys.stderr,
        )


def num_unproved(data: Dataset) -> int:
    """Return the number of answers without a proof, although their labeller promises a proof."""
    return sum(extra.get("proved") is False for extra in data.carried.get("extra", ()))


def _lines_of(
    function: Callable[[Any], Dataset], task: Task, extension: str, item: tuple[int, Any]
) -> tuple[int, bytes, int]:
    """Compute one chunk. Return its number, its lines, and its number of unproved answers.

    We pass the format's extension, because a module cannot be sent to another process.
    """
    number, chunk = item
    data = function(chunk)
    text = StringIO()
    formats.get(extension).module.write(text, data, task)
    return number, text.getvalue().encode(), num_unproved(data)


@contextmanager
def _claimed(output: str, key: Mapping[str, Any], source: Source) -> Iterator[Path]:
    """Yield the folder of a job's chunks, locked against other runs. Remove the folder on success.

    After an interrupt, a killed worker process or a full disk, a folder with chunks stays, so that
    the job can be resumed. Any other error would occur again. After such an error, a folder that
    this run created is removed, and the folder of an earlier run is kept. If a job cannot be
    resumed, its folder is temporary, because chunks of other input must never get into the output.
    """
    if output == "-":
        with TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    path = Path(output)
    check_writable(path)
    folder = path.with_name(f"{path.name}.partial")
    with ExitStack() as stack:
        with _writing(output):
            if source.key is None:
                scratch = TemporaryDirectory(prefix=f"{path.name}.", dir=path.parent)
                folder = Path(stack.enter_context(scratch))
            else:
                folder.mkdir(exist_ok=True)
                stack.enter_context(locked(folder, wait=False))
                is_new = not (folder / KEY).exists()
                _claim(folder, {**key, **source.key}, is_new)
        if source.key is None:
            yield folder
            return
        try:
            yield folder
        except BaseException as error:
            is_stop = isinstance(error, KeyboardInterrupt | KilledError | OSError | OutputError)
            if _numbers(folder) and (is_stop or not is_new):
                print(
                    f"the finished part is kept in {folder}; the same command continues from there",
                    file=sys.stderr,
                )
            elif is_new:
                shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)


@contextmanager
def _writing(output: str) -> Iterator[None]:
    """Raise OutputError instead of OSError."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{output}: cannot be written: {error.strerror or error}") from None


def _claim(folder: Path, key: Mapping[str, Any], is_new: bool) -> None:
    """Write the key of a new job, or raise InputError if the folder belongs to another job."""
    text = json.dumps(key, indent=1) + "\n"
    if is_new:
        with atomic_path(folder / KEY) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return
    key = json.loads(text)  # converts tuples to lists, as in the file
    try:
        former = json.loads((folder / KEY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        former = None
    if not isinstance(former, dict):
        raise InputError(f"{folder / KEY}: not readable; delete {folder}")
    for name in dict.fromkeys([*key, *former]):
        if former.get(name) != key.get(name):
            raise InputError(
                f"{folder}: holds an unfinished job with other options ({name} was "
                f"{short(former.get(name), 100)}, now {short(key.get(name), 100)}); finish that "
                "job, or delete the folder"
            )


def _numbers(folder: Path) -> dict[int, Path]:
    """Return the chunk files by number."""
    files = folder.glob("*-*.*")
    return {int(file.name.partition("-")[0]): file for file in files}


def _finished(folder: Path, extension: str) -> tuple[dict[int, int], int]:
    """Return the number of rows of each finished chunk, and their total of unproved answers.

    Remove damaged files.
    """
    done, total = {}, 0
    for number, file in _numbers(folder).items():
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
    return f"{number:06}-{unproved}-{checksum(lines)[:_DIGITS]}.{extension}"


def _write_chunk(folder: Path, number: int, unproved: int, lines: bytes, extension: str) -> None:
    """Write a chunk. The checksum in its name tells a later run whether the file is complete."""
    path = folder / _chunk_name(number, unproved, lines, extension)
    try:
        path.write_bytes(lines)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _join(folder: Path, output: str, task: Task, target: formats.Format | None) -> None:
    """Write the output: the joined lines of the chunks, or a file of the binary format `target`."""
    files = [file for _, file in sorted(_numbers(folder).items())]
    if target is not None:
        read = formats.get("jsonl").module.read_answered
        rows = enumerate((e for file in files for e in read(str(file), task)), 1)
        # Messages must not name the files of chunks, which the user did not write.
        examples = (example.replace(source=f"{output}: row {k}") for k, example in rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the instances were read, and warned of, before
            formats.write(output, examples, task)
    elif output == "-":
        to_standard_output(file.read_text(encoding="utf-8") for file in files)
    else:
        with atomic_path(Path(output)) as temporary, temporary.open("wb") as stream:
            for file in files:
                with file.open("rb") as lines:
                    shutil.copyfileobj(lines, stream)
