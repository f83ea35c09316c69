"""The examples of a file as flat arrays in memory maps: written once, opened again by later runs.

They lie beside `FILE` in `FILE.packed/`, or in the user's cache folder where that cannot be made,
in a folder whose name is the file's fingerprint: the task, a version, and the file's size and time
of change. So they are written anew when the file has changed, and no run writes what another reads.
"""

import contextlib
import hashlib
import os
import shutil
import stat
import time
from pathlib import Path

import numpy as np

from ptrnet import runtime
from ptrnet.data.streams import build_memmap
from ptrnet.errors import InputError
from ptrnet.files import atomic_folder
from ptrnet.tasks.base import Task
from ptrnet.types import Answers, Example, Floats, Indices

VERSION = 1  # of the arrays and what they hold
_DAY = 86_400  # seconds


class MemmapExamples:
    """The examples in a folder that `build_memmap` wrote.

    Raises:
        InputError: an array is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.fingerprint = folder.name  # of the file when its examples were written here
        try:
            self._inputs, self._starts, self._answers, self._answer_starts = (
                np.load(folder / array, mmap_mode="r", allow_pickle=False)
                for array in build_memmap.ARRAYS
            )
        except (OSError, ValueError) as error:
            raise InputError(f"{folder}: damaged: {error}; remove it") from None
        self.sizes: Indices = np.diff(self._starts)  # (m,) elements of each instance
        self.lengths: Indices = np.diff(self._answer_starts)  # (m,) indices of each answer

    def elements(self, first: int, stop: int) -> Floats:
        """`(t, d)`: the elements of the examples `first` to `stop - 1`, one after another."""
        return self._inputs[self._starts[first] : self._starts[stop]]

    def indices(self, first: int, stop: int) -> Indices:
        """The answers of the examples `first` to `stop - 1`, flat, one after another."""
        flat = self._answers[self._answer_starts[first] : self._answer_starts[stop]]
        return flat.astype(np.int64)

    def example(self, number: int, task: Task) -> Example:
        """One example, with its answer as the file has it."""
        flat = self.indices(number, number + 1)
        (outputs,) = task.unpad(Answers(flat[None], np.array([len(flat)])))
        return Example(np.array(self.elements(number, number + 1)), outputs)

    def of_one_size(self, numbers: Indices) -> tuple[Floats, Answers]:
        """Inputs `(B, n, d)` and answers of examples, as the file has them.

        Args:
            numbers: `(B,)` of examples whose instances have one size n.
        """
        elements = np.arange(self.sizes[numbers[0]])
        inputs = self._inputs[self._starts[numbers][:, None] + elements]
        starts, lengths = self._answer_starts[numbers], self.lengths[numbers]
        positions = np.arange(lengths.max())
        inside = positions < lengths[:, None]
        indices = self._answers[np.where(inside, starts[:, None] + positions, 0)]
        return inputs, Answers(np.where(inside, indices, 0).astype(np.int64), lengths)


def open_memmap(path: str, task: Task) -> MemmapExamples:
    """The examples of a file; their arrays are written now where they are not there yet.

    Raises:
        InputError: no such file, a line that cannot be used, an example without an answer, or
            no room for the arrays.
    """
    fingerprint, folders = _fingerprint(path, task), _folders(Path(path))
    for folder in folders:
        if (folder / fingerprint).is_dir():
            return MemmapExamples(folder / fingerprint)
    folder = _first_writable(folders)
    try:
        with atomic_folder(folder / fingerprint) as temporary:
            build_memmap.build_memmap(path, task, temporary)
            if _fingerprint(path, task) != fingerprint:
                raise InputError(f"{path}: was changed while it was read")
    except BaseException:
        with contextlib.suppress(OSError):  # not empty: another run wrote arrays there
            folder.rmdir()
        raise
    _remove_outdated(folder, fingerprint, task)
    return MemmapExamples(folder / fingerprint)


def _fingerprint(path: str, task: Task) -> str:
    """The name of the folder of arrays for the file as it is now."""
    try:
        status = os.stat(path)  # noqa: PTH116  Path.stat takes no empty name
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise InputError(f"{path}: cannot be read: {reason}") from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: expected a file, to be read more than once")
    return f"{task.name}-v{VERSION}-{status.st_size}-{status.st_mtime_ns}"


def _folders(path: Path) -> tuple[Path, Path]:
    """Where arrays of a file may lie: beside it, and in the user's cache."""
    digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    cached = runtime.cache_folder() / f"{path.name}-{digest}.packed"
    return path.with_name(f"{path.name}.packed"), cached


def _first_writable(folders: tuple[Path, Path]) -> Path:
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise InputError(f"{folders[0]}: cannot be written, nor can {folders[-1]}")


def _remove_outdated(folder: Path, fingerprint: str, task: Task) -> None:
    """Removes arrays of what the file was before, and what killed runs left behind."""
    for former in folder.glob(f"{task.name}-*"):
        if former.name != fingerprint:
            shutil.rmtree(former, ignore_errors=True)
    for temporary in folder.glob(f".{task.name}-*"):
        if temporary.stat().st_mtime < time.time() - _DAY:  # younger: another run may write it
            shutil.rmtree(temporary, ignore_errors=True)
