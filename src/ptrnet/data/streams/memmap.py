"""The examples of a file as flat arrays in memory maps: written once, opened again by later runs.

They lie beside `FILE` in `FILE.packed/`, or in the user's cache folder if that cannot be made.
There they have a folder whose name is the file's fingerprint: the task, a version, the SHA-256 of
the file's content and, where elements have named fields, that of the fields that are read. So they
are written anew when that has changed, and no run writes what another reads. The arrays have
checksums, too: damaged ones are written anew.

Each run reads the file and its arrays once to know that. It costs little beside any training, and
size and time would say neither that a file was changed nor that it was only copied or touched.
"""

import contextlib
import hashlib
import os
import shutil
import stat
import sys
import time
from pathlib import Path

import numpy as np

from ptrnet import runtime
from ptrnet.data.streams import build_memmap
from ptrnet.errors import InputError
from ptrnet.files import FolderExistsError, atomic_folder, checksum
from ptrnet.tasks.base import Task
from ptrnet.types import Answers, Example, Floats, Indices

VERSION = 2  # of the arrays and what they hold
_DIGITS = 32  # of the checksum of a file's content
_DAY = 86_400  # seconds


class MemmapExamples:
    """The examples in a folder that `build_memmap` wrote.

    Raises:
        InputError: an array is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.fingerprint = folder.name  # of the file when its examples were written here
        build_memmap.check_arrays(folder)
        try:
            self._inputs, self._starts, self._answers, self._answer_starts = (
                np.load(folder / array, mmap_mode="r", allow_pickle=False)
                for array in build_memmap.ARRAYS
            )
        except (OSError, ValueError) as error:
            raise InputError(f"{folder}: damaged: {error}") from None
        self.sizes: Indices = np.diff(self._starts)  # (num_examples,) elements of each
        self.lengths: Indices = np.diff(self._answer_starts)  # (num_examples,) indices of each

    def elements(self, first: int, stop: int) -> Floats:
        """`(num_elements, d)`: those of the examples `first` to `stop - 1`, one after another."""
        return self._inputs[self._starts[first] : self._starts[stop]]

    def indices(self, first: int, stop: int) -> Indices:
        """`(num_indices,)`: answers of the examples `first` to `stop - 1`, one after another."""
        flat = self._answers[self._answer_starts[first] : self._answer_starts[stop]]
        return flat.astype(np.int64)

    def example(self, index: int, task: Task) -> Example:
        """Example `index`, counted from 0, as the file has it."""
        flat = self.indices(index, index + 1)
        (outputs,) = task.unpad(Answers(flat[None], np.array([len(flat)])))
        return Example(np.array(self.elements(index, index + 1)), outputs)

    def of_one_size(self, indices: Indices) -> tuple[Floats, Answers]:
        """Inputs `(B, n, d)` and padded answers `(B, M)` of examples, as the file has them.

        Args:
            indices: `(B,)` of examples whose instances have one size n.
        """
        elements = np.arange(self.sizes[indices[0]])
        inputs = self._inputs[self._starts[indices][:, None] + elements]
        starts, lengths = self._answer_starts[indices], self.lengths[indices]
        places = starts[:, None] + np.arange(lengths.max())
        mask = Answers(places, lengths).mask
        flat = self._answers[np.where(mask, places, 0)]
        return inputs, Answers(np.where(mask, flat, 0).astype(np.int64), lengths)


def open_memmap(path: str, task: Task) -> MemmapExamples:
    """The examples of a file; their arrays are written now where they are not there yet.

    Raises:
        InputError: no such file, a line that cannot be used, an example without an answer, or
            no room for the arrays.
    """
    fingerprint, folders = _fingerprint(path, task), _folders(Path(path))
    for folder in folders:
        if (folder / fingerprint).is_dir():
            try:
                return MemmapExamples(folder / fingerprint)
            except InputError as error:
                _remove_damaged(folder / fingerprint, error)
    folder = _first_writable(folders)
    try:
        with atomic_folder(folder / fingerprint) as temporary:
            build_memmap.build_memmap(path, task, temporary)
            if _fingerprint(path, task) != fingerprint:
                raise InputError(f"{path}: was changed while it was read")
    except FolderExistsError:  # another run's, of the same file
        pass
    except BaseException:
        with contextlib.suppress(OSError):  # not empty: another run wrote arrays there
            folder.rmdir()
        raise
    _remove_outdated(folder, fingerprint, task)
    return MemmapExamples(folder / fingerprint)


def _remove_damaged(folder: Path, error: InputError) -> None:
    """Removes a folder of arrays, and says why; raises the error where that cannot be."""
    try:
        shutil.rmtree(folder)
    except OSError:
        raise error from None
    print(f"{error}; written anew", file=sys.stderr)


def _fingerprint(path: str, task: Task) -> str:
    """The name of the folder of arrays for the file as it is now."""
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
    read = f"-{hashlib.sha256(repr(task.schema).encode()).hexdigest()[:16]}" if task.schema else ""
    return f"{_prefix(task)}{content[:_DIGITS]}{read}"


def _prefix(task: Task) -> str:
    """What is before the digits of a file's content in its fingerprint."""
    return f"{task.name}-v{VERSION}-"


def _folders(path: Path) -> tuple[Path, Path]:
    """The folders in which arrays of a file may lie: beside it, and in the user's cache."""
    digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    cached = runtime.cache_folder() / f"{path.name}-{digest}.packed"
    return path.with_name(f"{path.name}.packed"), cached


def _first_writable(folders: tuple[Path, Path]) -> Path:
    """The first folder that can be made and written. Raises InputError if there is none."""
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise InputError(f"{folders[0]}: cannot be written, nor can {folders[-1]}")


def _remove_outdated(folder: Path, fingerprint: str, task: Task) -> None:
    """Removes the arrays of former states of the file, and what killed runs left behind.

    Those of other fields stay: a run may be about to open them.
    """
    present = fingerprint[: len(_prefix(task)) + _DIGITS]
    for former in folder.glob(f"{task.name}-*"):
        if not former.name.startswith(present):
            shutil.rmtree(former, ignore_errors=True)
    for temporary in folder.glob(f".{task.name}-*"):
        with contextlib.suppress(FileNotFoundError):  # another run has just renamed it
            if temporary.stat().st_mtime < time.time() - _DAY:  # younger: it may still be written
                shutil.rmtree(temporary, ignore_errors=True)
