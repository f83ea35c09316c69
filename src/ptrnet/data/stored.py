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
checksum.txt       a SHA-256 of all of these files; damaged arrays are built again

Each run hashes the file and its arrays, which takes little time compared with the training. The
modification time and the size do not tell whether the content has changed: copying a file changes
its time, and an edit may keep its size.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import joblib
import numpy as np
from numpy.typing import NDArray

from ptrnet import runtime
from ptrnet.data import checks, formats
from ptrnet.data.columns import Columns
from ptrnet.data.dataset import chunks_of
from ptrnet.data.formats.parts import BLOCK, Block, blocks
from ptrnet.errors import InputError
from ptrnet.files import FolderExistsError, atomic_folder, checksum, exists, named_failure
from ptrnet.parallel import ordered_map
from ptrnet.progress import track
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Example

VERSION = 6  # increase this version if the format, the content or the checks of the arrays change
CHECKSUM = "checksum.txt"
_DIGITS = 32  # how many digits of the file's SHA-256 are in its fingerprint
_CHUNK = 4000  # how many examples are in memory as objects at a time


def open_file(path: str, task: Task, group: str = "") -> Dataset:
    """Return the examples of a file as memory maps. If the arrays do not exist, build them first.

    See `ptrnet.data.groups.with_groups` for the field of groups. Raises InputError if the file
    cannot be read, a line cannot be used, an example has no answer, or neither folder for the
    arrays can be written.
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
    return exists(f"{path}/{CHECKSUM}")


def open_folder(folder: Path, task: Task) -> Dataset:
    """Return the dataset of memory maps in a folder that `save` wrote.

    Raises:
        InputError: a file cannot be read, or the files do not match their checksum.
    """
    with named_failure(f"{folder}: damaged"):
        recorded = (folder / CHECKSUM).read_text(encoding="utf-8", errors="replace")
        if recorded != _checksum_of_arrays(folder):
            raise InputError(f"{folder}: damaged: its arrays do not match {CHECKSUM}")
        maps = {
            file.stem: np.load(file, mmap_mode="r", allow_pickle=False)
            for file in folder.glob("*.npy")
        }
    fields = {"weight": "weights", "group": "groups"}
    return Dataset(
        maps["inputs"],
        np.asarray(maps["starts"]),
        maps["answers"],
        np.asarray(maps["answer_starts"]),
        item_size=task.facts.item_size,
        grades=maps.get("grades"),
        columns={field: maps[name] for field, name in fields.items() if name in maps},
        fingerprint=recorded,
    )


def _checksum_of_arrays(folder: Path) -> str:
    files = sorted(folder.glob("*.npy"))
    return checksum("".join(f"{file.name} {checksum(file)}\n" for file in files).encode())


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
        examples = formats.read_instances(path, task, Columns(group=group))
        parts = chunks_of(require_answers(examples), _CHUNK)
        save(track(parts, f"reading {path}", None), folder, path)


def _read_block(block: Block, path: str, task: Task) -> Dataset:
    from ptrnet.data.formats import txt  # other formats have no blocks

    part = Dataset.of(require_answers(txt.read_block(block, path, task)))
    checks.check_feasible(part, task)
    return replace(part, columns={})  # do not send the sources of lines between processes


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
        dtypes: dict[str, np.dtype[Any]] = {}
        for part in filter(len, parts):
            assert part.answers is not None
            columns: dict[str, NDArray[Any] | None] = {
                "inputs": part.elements,
                "answers": part.answers.astype(np.int32),
                "grades": part.grades,
                "weights": part.weights,
                "groups": part.groups,
            }
            for name, values in columns.items():
                if values is not None:
                    if name not in streams:
                        streams[name] = files.enter_context(TemporaryFile(dir=folder))
                        dtypes[name] = values.dtype
                    streams[name].write(values.tobytes())
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
            flat = np.memmap(stream, dtypes[name], "r")  # values need not fit into memory
            np.save(folder / name, flat.reshape(-1, d) if name == "inputs" else flat)
    np.save(folder / "starts", starts)
    np.save(folder / "answer_starts", answer_starts)
    (folder / CHECKSUM).write_text(_checksum_of_arrays(folder), encoding="utf-8")


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
    read = [repr(value) for value in (task.facts.schema, group) if value]
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
