"""Convert the examples of a file to memory maps once, and open them in later runs.

The arrays of `FILE` are saved in `FILE.packed/`, or in the user's cache folder if `FILE.packed/`
cannot be written. The name of a subfolder is the fingerprint of the file: the task, a version, the
SHA-256 of the content and, if elements have named fields or the user named the field of groups, a
SHA-256 of the schema and that name. The content includes other files that are read with the file,
such as the cities of a tour. So a changed file gets a new subfolder, and no run overwrites arrays
that another run reads. A subfolder holds:

inputs.npy         (num_elements, d) float64, the elements of all instances, one after another
starts.npy         (num_examples + 1,) int64, where each instance begins; last: num_elements
answers.npy        (num_indices,) int32, all answers, flat, 0-based, in the order of the file
answer_starts.npy  (num_examples + 1,) int64, where each answer begins; last: num_indices
grades.npy         (num_elements,) float64, only if the examples have grades
weights.npy        (num_examples,) float64, only if the examples have weights
groups.npy         (num_examples,) int64, codes of groups, only if the examples have groups
checksums.json     the SHA-256 of each of these files; damaged arrays are built again

Each run hashes the file and its arrays, which takes little time compared with the training. The
modification time and the size do not tell whether the content has changed: copying a file changes
its time, and an edit may keep its size.
"""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import joblib
import numpy as np
from numpy.typing import DTypeLike

from ptrnet import runtime
from ptrnet.data import checks, formats
from ptrnet.data.dataset import Dataset, chunks_of
from ptrnet.data.formats import txt
from ptrnet.data.formats.parts.lines import BLOCK, Block, blocks
from ptrnet.data.tables import Columns
from ptrnet.errors import InputError
from ptrnet.files import FolderExistsError, atomic_folder, checksum, exists
from ptrnet.parallel import ordered_map
from ptrnet.progress import track
from ptrnet.tasks.base import Task
from ptrnet.types import Example

VERSION = 5  # increase this version if the format, the content or the checks of the arrays change
ARRAYS = INPUTS, STARTS, ANSWERS, ANSWER_STARTS = (
    "inputs.npy",
    "starts.npy",
    "answers.npy",
    "answer_starts.npy",
)
GRADES, WEIGHTS, GROUPS = "grades.npy", "weights.npy", "groups.npy"
_DTYPES: dict[str, DTypeLike] = {
    INPUTS: np.float64,
    ANSWERS: np.int32,
    GRADES: np.float64,
    WEIGHTS: np.float64,
    GROUPS: np.int64,
}
CARRIED = {"weight": WEIGHTS, "group": GROUPS}  # fields of examples, and their files
CHECKSUMS = "checksums.json"
_DIGITS = 32  # how many digits of the file's SHA-256 are in its fingerprint
_CHUNK = 4000  # how many examples are in memory as objects at a time


def open_file(path: str, task: Task, group: str = "") -> Dataset:
    """Return the examples of a file as memory maps. If the arrays do not exist, build them first.

    Args:
        path: the file.
        task: the task of the examples.
        group: the field of groups; see `ptrnet.data.groups.with_groups`.

    Raises:
        InputError: the file cannot be read, a line cannot be used, an example has no answer, or
            neither folder for the arrays can be written.
    """
    fingerprint, folders = _fingerprint(path, task, group), _folders(Path(path))
    for folder in folders:
        if (folder / fingerprint).is_dir():
            try:
                return open_folder(folder / fingerprint, task)
            except InputError as error:
                print(f"{error}; building it again", file=sys.stderr)
                shutil.rmtree(folder / fingerprint, ignore_errors=True)
    folder = _first_writable(folders)
    try:
        with atomic_folder(folder / fingerprint) as temporary:
            build(path, task, temporary, group)
            if _fingerprint(path, task, group) != fingerprint:
                raise InputError(f"{path}: was changed while it was read")
    except FolderExistsError:  # another run has built the arrays in the meantime
        pass
    except BaseException:
        with contextlib.suppress(OSError):  # raised if the folder holds arrays of other runs
            folder.rmdir()
        raise
    _remove_outdated(folder, fingerprint, task)
    return open_folder(folder / fingerprint, task)


def is_saved(path: str) -> bool:
    """Whether a path is a folder that `save` wrote."""
    return exists(f"{path}/{CHECKSUMS}")


def open_folder(folder: Path, task: Task) -> Dataset:
    """Return the dataset of memory maps in a folder that `save` wrote.

    Raises:
        InputError: a file is missing, cannot be read, or does not match its checksum.
    """
    try:
        sums = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        if not {*ARRAYS} <= {*sums} <= {*_DTYPES, *ARRAYS}:
            raise TypeError
        for array, expected in sums.items():
            if checksum(folder / array) != expected:
                raise InputError(f"{folder}: damaged: {array} does not match its checksum")
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
        carried={name: maps[file] for name, file in CARRIED.items() if file in maps},
        fingerprint=checksum(folder / CHECKSUMS),
    )


def build(path: str, task: Task, folder: Path, group: str = "") -> None:
    """Convert all examples of a file to arrays in an empty folder. `group` is that of `open_file`.

    Raises:
        InputError: the file cannot be read, has no examples, has an example without an answer, or
            has only empty answers. The message names the first line that cannot be used.
    """
    num_blocks = 1 + Path(path).stat().st_size // BLOCK
    if formats.format_of(path).extension == "txt" and not group:
        # If there is only one block, this process reads it: starting another process takes longer.
        read = partial(_read_block, path=path, task=task)
        parts = ordered_map(read, blocks(path), min(joblib.cpu_count(), num_blocks))
        save(track(parts, f"reading {path}", num_blocks), folder, path)
    else:
        examples = formats.read(path, task, Columns(group=group))
        parts = chunks_of(require_answers(examples), task, _CHUNK)
        save(track(parts, f"reading {path}", None), folder, path)


def _read_block(block: Block, path: str, task: Task) -> Dataset:
    examples = list(require_answers(txt.read_block(block, path, task)))
    checks.check_feasible(examples, task)
    part = Dataset.of(examples, task.item_size)
    return replace(part, carried={})  # do not send the sources of lines between processes


def save(parts: Iterable[Dataset], folder: Path, source: str) -> None:
    """Write the arrays of a dataset into an empty folder. The dataset is given in parts.

    Args:
        parts: consecutive rows, all with answers. Either all parts have grades, or no part has. The
            same is true for weights and for groups.
        folder: the empty folder.
        source: the name of the examples in error messages.

    Raises:
        InputError: there is no example, or all answers are empty.
    """
    sizes, lengths, d = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], 0
    with contextlib.ExitStack() as files:
        # The header of a .npy has the number of rows, which we know only at the end. So first
        # write the values to temporary files without a header.
        streams: dict[str, IO[bytes]] = {}
        for part in filter(len, parts):
            columns = {
                INPUTS: part.elements,
                ANSWERS: part.answers,
                GRADES: part.grades,
                WEIGHTS: part.weights,
                GROUPS: part.groups,
            }
            for name, values in columns.items():
                if values is not None:
                    if name not in streams:
                        streams[name] = files.enter_context(TemporaryFile(dir=folder))
                    streams[name].write(np.ascontiguousarray(values, _DTYPES[name]).tobytes())
            sizes.append(part.sizes)
            lengths.append(part.lengths)
            d = part.elements.shape[1]
        if not d:
            raise InputError(f"{source}: holds no instance")
        starts, answer_starts = np.concatenate(sizes).cumsum(), np.concatenate(lengths).cumsum()
        if not answer_starts[-1]:
            raise InputError(f"{source}: every answer is empty, expected one with an element")
        for name, stream in streams.items():
            stream.flush()
            flat = np.memmap(stream, _DTYPES[name], "r")  # values need not fit into memory
            np.save(folder / name, flat.reshape(-1, d) if name == INPUTS else flat)
    np.save(folder / STARTS, starts)
    np.save(folder / ANSWER_STARTS, answer_starts)
    sums = {array: checksum(folder / array) for array in (*streams, STARTS, ANSWER_STARTS)}
    (folder / CHECKSUMS).write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")


def require_answers(examples: Iterable[Example]) -> Iterator[Example]:
    """Check that examples can be used for training, and yield the examples.

    Raises:
        InputError: an example has no answer, or only some of the examples have grades.
    """
    is_graded = None
    for example in examples:
        if example.outputs is None:
            raise InputError(f"{example.source}: has no answer to train on")
        if is_graded is None:
            is_graded = example.grades is not None
        elif is_graded != (example.grades is not None):
            expected = "grades" if is_graded else "no grades"
            raise InputError(f"{example.source}: expected {expected}, as in earlier examples")
        yield example


def _fingerprint(path: str, task: Task, group: str) -> str:
    """Return the name of the subfolder for the arrays of the file's current content."""
    if exists(path) and not os.path.isfile(path):  # noqa: PTH113  as files.exists
        raise InputError(f"{path}: expected a regular file, because it is read more than once")
    content = formats.content_checksum(path)[:_DIGITS]
    read = [repr(value) for value in (task.schema, group) if value]
    fields = f"-{checksum(' '.join(read).encode())[:16]}" if read else ""
    return f"{task.name}-v{VERSION}-{content}{fields}"


def _folders(path: Path) -> tuple[Path, Path]:
    """Return the folders that may hold a file's arrays: next to the file, and in the user's cache.

    The name in the cache has a hash of the path, because files in two folders may have equal names.
    """
    digest = checksum(os.fsencode(path.resolve()))[:16]
    cached = runtime.cache_folder() / f"{path.name}-{digest}.packed"
    return path.with_name(f"{path.name}.packed"), cached


def _first_writable(folders: tuple[Path, Path]) -> Path:
    """Create and return the first writable folder. Raises InputError if no folder is writable."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    raise InputError(f"{folders[0]}: cannot be written, nor can {folders[-1]}")


def _remove_outdated(folder: Path, fingerprint: str, task: Task) -> None:
    """Remove arrays that were made from an earlier content of the file, or by an earlier VERSION.

    Keep arrays of the current content with other schemas, because another run may be about to open
    these arrays.
    """
    current = fingerprint[: len(f"{task.name}-v{VERSION}-") + _DIGITS]
    for outdated in folder.glob(f"{task.name}-v[0-9]*"):
        if not outdated.name.startswith(current):
            shutil.rmtree(outdated, ignore_errors=True)
