"""The examples of a file as a `Dataset` of memory maps, built once and opened by later runs.

The arrays of `FILE` are in `FILE.packed/`, or in the user's cache folder if that cannot be written.
Each set of arrays has a folder named by the file's fingerprint: the task, a version, the SHA-256 of
the file's content and, if elements have named fields, that of the fields that are read. So a file
that has changed gets new arrays, and no run writes what another one reads:

inputs.npy         (num_elements, d) float64, the elements of all instances one after another
starts.npy         (num_examples + 1,) int64, where each instance begins in them, and the end
answers.npy        (num_indices,) int32, the answers flat, 0-based, in the order of the file
answer_starts.npy  (num_examples + 1,) int64, where each answer begins in them, and the end
grades.npy         (num_elements,) float64, only if answers are graded
checksums.json     the SHA-256 of each of these files; damaged arrays are built anew

Each run hashes the file and its arrays once. That costs little next to a training; size and time of
a file would not tell a changed file from one that was only copied.
"""

import contextlib
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from ptrnet import runtime
from ptrnet.data import formats
from ptrnet.data.dataset import Dataset, chunks_of
from ptrnet.data.formats import txt
from ptrnet.data.formats.parts.lines import BLOCK, Block, blocks
from ptrnet.errors import InputError
from ptrnet.files import FolderExistsError, atomic_folder, checksum, exists
from ptrnet.parallel import ordered_map
from ptrnet.progress import track
from ptrnet.tasks.base import Task
from ptrnet.types import Example

VERSION = 3  # of the arrays and what they hold
ARRAYS = INPUTS, STARTS, ANSWERS, ANSWER_STARTS = (
    "inputs.npy",
    "starts.npy",
    "answers.npy",
    "answer_starts.npy",
)
GRADES = "grades.npy"
_DTYPES: dict[str, DTypeLike] = {INPUTS: np.float64, ANSWERS: np.int32, GRADES: np.float64}
CHECKSUMS = "checksums.json"
_DIGITS = 32  # of the checksum of a file's content, in its fingerprint
_GROUP = 4000  # examples that are in memory as objects at a time
_DAY = 86_400  # seconds


def open_file(path: str, task: Task) -> Dataset:
    """Return the examples of a file as memory maps; build them first if they are not there.

    Raises:
        InputError: no such file, a line that cannot be used, an example without an answer, or
            no room for the arrays.
    """
    fingerprint, folders = _fingerprint(path, task), _folders(Path(path))
    for folder in folders:
        if (folder / fingerprint).is_dir():
            try:
                return open_folder(folder / fingerprint, task)
            except InputError as error:
                try:
                    shutil.rmtree(folder / fingerprint)
                except OSError:
                    raise error from None
                print(f"{error}; written anew", file=sys.stderr)
    folder = _first_writable(folders)
    try:
        with atomic_folder(folder / fingerprint) as temporary:
            build(path, task, temporary)
            if _fingerprint(path, task) != fingerprint:
                raise InputError(f"{path}: was changed while it was read")
    except FolderExistsError:  # another run's, of the same file
        pass
    except BaseException:
        with contextlib.suppress(OSError):  # not empty: another run wrote arrays there
            folder.rmdir()
        raise
    _remove_outdated(folder, fingerprint, task)
    return open_folder(folder / fingerprint, task)


def is_saved(path: str) -> bool:
    """Whether this is a folder that `save` wrote."""
    return exists(f"{path}/{CHECKSUMS}")


def open_folder(folder: Path, task: Task) -> Dataset:
    """Return the dataset of memory maps in a folder that `save` wrote.

    Raises:
        InputError: the arrays are not as they were written.
    """
    try:
        sums = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        if not {*ARRAYS} <= {*sums} <= {*_DTYPES, *ARRAYS}:
            raise TypeError
        for array, expected in sums.items():
            if checksum(folder / array) != expected:
                raise InputError(f"{folder}: damaged: {array} is not as it was written")
        maps = {a: np.load(folder / a, mmap_mode="r", allow_pickle=False) for a in sums}
    except OSError as error:
        raise InputError(f"{folder}: damaged: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, AttributeError, TypeError):
        raise InputError(f"{folder}: damaged: {CHECKSUMS} is not readable") from None
    return Dataset(
        maps[INPUTS],
        np.asarray(maps[STARTS]),
        maps[ANSWERS],
        np.asarray(maps[ANSWER_STARTS]),
        item_size=task.item_size,
        grades=maps.get(GRADES),
        fingerprint=checksum(folder / CHECKSUMS),
    )


def build(path: str, task: Task, folder: Path) -> None:
    """Write all examples of a file into the arrays of an empty folder.

    Raises:
        InputError: the file cannot be read, holds no example, holds one without an answer, or
            only empty answers; the message is about the first line that cannot be used.
    """
    num_blocks = 1 + Path(path).stat().st_size // BLOCK
    if formats.format_of(path).extension == "txt":
        # One process if there is one block: starting others takes longer than reading it.
        read = partial(_read_block, path=path, task=task)
        parts = ordered_map(read, blocks(path), min(joblib.cpu_count(), num_blocks))
        save(track(parts, f"reading {path}", num_blocks), folder, path)
    else:
        parts = chunks_of(with_answers(formats.read(path, task)), task, _GROUP)
        save(track(parts, f"reading {path}", None), folder, path)


def _read_block(block: Block, path: str, task: Task) -> Dataset:
    part = Dataset.of(with_answers(txt.read_block(block, path, task)), task.item_size)
    return replace(part, carried={})  # the names of lines would have to be sent, too


def save(parts: Iterable[Dataset], folder: Path, source: str) -> None:
    """Write the arrays of a dataset, given in parts, into an empty folder.

    Args:
        parts: with answers; all of them with grades, or none.
        folder: the empty folder.
        source: what messages call the examples.

    Raises:
        InputError: there is no example, or all answers are empty.
    """
    sizes, lengths = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    with contextlib.ExitStack() as files:
        writers: dict[str, NpyWriter] = {}
        for part in filter(len, parts):
            columns = {INPUTS: part.elements, ANSWERS: part.answers, GRADES: part.grades}
            for name, values in columns.items():
                if values is None:
                    continue
                if name not in writers:
                    writer = NpyWriter(folder / name, _DTYPES[name], values.shape[1:])
                    writers[name] = files.enter_context(writer)
                writers[name].append(values)
            sizes.append(part.sizes)
            lengths.append(part.lengths)
    if not writers or not writers[INPUTS].count:
        raise InputError(f"{source}: holds no instance")
    if not writers[ANSWERS].count:
        raise InputError(f"{source}: every answer is empty")
    np.save(folder / STARTS, np.concatenate(sizes).cumsum())
    np.save(folder / ANSWER_STARTS, np.concatenate(lengths).cumsum())
    sums = {array: checksum(folder / array) for array in (*writers, STARTS, ANSWER_STARTS)}
    (folder / CHECKSUMS).write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")


def with_answers(examples: Iterable[Example]) -> Iterator[Example]:
    """Yield examples to train on.

    Raises:
        InputError: an example has no answer, or has grades if the others have none.
    """
    is_graded = None
    for example in examples:
        if example.outputs is None:
            raise InputError(f"{example.source}: has no answer to train on")
        if is_graded is None:
            is_graded = example.grades is not None
        elif is_graded != (example.grades is not None):
            expected = "grades, as the examples" if is_graded else "no grades, as in the examples"
            raise InputError(f"{example.source}: expected {expected} before it")
        yield example


class NpyWriter:
    """A new `.npy` file to which rows are appended; a context manager that completes the file.

    Args:
        path: of the file.
        dtype: of its numbers.
        row: the shape of a row; `()` if rows are single numbers.
    """

    def __init__(self, path: Path, dtype: DTypeLike, row: tuple[int, ...]) -> None:
        self.dtype, self.row, self.count = np.dtype(dtype), row, 0
        self._stream = path.open("wb")
        self._write_header()

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows, `(num_rows, *row)`, cast to the file's dtype."""
        self._stream.write(np.ascontiguousarray(rows, self.dtype).tobytes())
        self.count += len(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._stream:
            # NumPy's header leaves room for the first axis to grow: the new one is as long.
            self._stream.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        shape = (self.count, *self.row)
        descr = npy.dtype_to_descr(self.dtype)
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(self._stream, header)


def _fingerprint(path: str, task: Task) -> str:
    """Return the name of the folder of arrays for the file as it is now."""
    try:
        status = os.stat(path)  # noqa: PTH116  Path.stat takes no empty name
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path}: expected a file, to be read more than once")
        content = checksum(path)
    except InputError:  # a ValueError, too
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise InputError(f"{path}: cannot be read: {reason}") from None
    fields = checksum(repr(task.schema).encode())[:16]
    return f"{_prefix(task)}{content[:_DIGITS]}" + f"-{fields}" * (task.schema is not None)


def _prefix(task: Task) -> str:
    """Return what is before the digits of a file's content in its fingerprint."""
    return f"{task.name}-v{VERSION}-"


def _folders(path: Path) -> tuple[Path, Path]:
    """Return the folders that may hold a file's arrays: one beside it, one in the user's cache."""
    digest = checksum(os.fsencode(path.resolve()))[:16]
    cached = runtime.cache_folder() / f"{path.name}-{digest}.packed"
    return path.with_name(f"{path.name}.packed"), cached


def _first_writable(folders: tuple[Path, Path]) -> Path:
    """Return the first folder that can be made and written. Raises InputError if none can."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    raise InputError(f"{folders[0]}: cannot be written, nor can {folders[-1]}")


def _remove_outdated(folder: Path, fingerprint: str, task: Task) -> None:
    """Remove the arrays of former states of the file, and what killed runs left behind.

    Arrays of other fields stay: a run may be about to open them.
    """
    present = fingerprint[: len(_prefix(task)) + _DIGITS]
    for former in folder.glob(f"{task.name}-*"):
        if not former.name.startswith(present):
            shutil.rmtree(former, ignore_errors=True)
    for temporary in folder.glob(f".{task.name}-*"):
        with contextlib.suppress(FileNotFoundError):  # another run has just renamed it
            if temporary.stat().st_mtime < time.time() - _DAY:  # younger: it may still be written
                shutil.rmtree(temporary, ignore_errors=True)
