"""The examples of a file as flat arrays in memory maps: made once, used again by later runs.

They are kept beside `FILE` in `FILE.packed/`, or in the user's cache folder where that cannot be
made, in a folder whose name says of what they are: task, version, and the file's size and time.
So they are made anew when the file has changed, and what one run reads no other writes.
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
_A_DAY = 86_400  # seconds


class Packed:
    """The examples in a folder that `build_memmap.pack` wrote.

    Raises:
        InputError: the arrays are not there, or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.key = folder.name  # what the file was when it was packed
        try:
            self._inputs, self._starts, self._answers, self._answer_starts = (
                np.load(folder / name, mmap_mode="r", allow_pickle=False)
                for name in (
                    build_memmap.INPUTS,
                    build_memmap.STARTS,
                    build_memmap.ANSWERS,
                    build_memmap.ANSWER_STARTS,
                )
            )
        except (OSError, ValueError) as error:
            raise InputError(f"{folder}: damaged: {error}; remove it") from None
        self.sizes: Indices = np.diff(self._starts)  # (m,) elements of each instance
        self.widths: Indices = np.diff(self._answer_starts)  # (m,) indices of each answer

    def elements(self, first: int, last: int) -> Floats:
        """`(t, d)`: the elements of the examples `first` to `last - 1`, one after another."""
        return self._inputs[self._starts[first] : self._starts[last]]

    def indices(self, first: int, last: int) -> Indices:
        """The answers of the examples `first` to `last - 1`, flat, one after another."""
        whole = self._answers[self._answer_starts[first] : self._answer_starts[last]]
        return whole.astype(np.int64)

    def example(self, number: int, task: Task) -> Example:
        """One example, with its answer as the file has it."""
        flat = self.indices(number, number + 1)
        (outputs,) = task.unpad(Answers(flat[None], np.array([len(flat)])))
        return Example(np.array(self.elements(number, number + 1)), outputs)

    def of_one_size(self, chosen: Indices) -> tuple[Floats, Answers]:
        """`(B, n, d)` instances, and their answers as the file has them.

        Args:
            chosen: `(B,)` numbers of examples whose instances have one size n.
        """
        elements = np.arange(self.sizes[chosen[0]])
        inputs = self._inputs[self._starts[chosen][:, None] + elements]
        begins = self._answer_starts[chosen]
        lengths = self._answer_starts[chosen + 1] - begins
        places = np.arange(lengths.max())
        inside = places < lengths[:, None]
        indices = self._answers[np.where(inside, begins[:, None] + places, 0)]
        return inputs, Answers(np.where(inside, indices, 0).astype(np.int64), lengths)


def packed(name: str, task: Task) -> Packed:
    """The examples of a file, packed now if they are not yet.

    Raises:
        InputError: no such file, a line that cannot be used, an example without an answer, or
            no room for the arrays.
    """
    key, path = _key(name, task), Path(name)
    homes = (path.with_name(f"{path.name}.packed"), _cache(path))
    for home in homes:
        if (home / key).is_dir():
            return Packed(home / key)
    home = _first_writable(*homes)
    try:
        with atomic_folder(home / key) as temporary:
            build_memmap.pack(name, task, temporary)
            if _key(name, task) != key:
                raise InputError(f"{name}: was changed while it was read")
    except BaseException:
        with contextlib.suppress(OSError):  # it holds what another run has made
            home.rmdir()
        raise
    for older in home.glob(f"{task.name}-*"):
        if older.name != key:
            shutil.rmtree(older, ignore_errors=True)
    for killed in home.glob(f".{task.name}-*"):  # what a run left that was killed in the midst
        if killed.stat().st_mtime < time.time() - _A_DAY:
            shutil.rmtree(killed, ignore_errors=True)
    return Packed(home / key)


def _key(name: str, task: Task) -> str:
    """The name of the folder for this content of the file."""
    try:
        found = os.stat(name)  # noqa: PTH116  Path.stat takes no empty name
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise InputError(f"{name}: cannot be read: {reason}") from None
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{name}: expected a file, to be read more than once")
    return f"{task.name}-v{VERSION}-{found.st_size}-{found.st_mtime_ns}"


def _cache(path: Path) -> Path:
    place = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    return runtime.cache_folder() / f"{path.name}-{place}.packed"


def _first_writable(*folders: Path) -> Path:
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise InputError(f"{folders[0]}: cannot be written, nor can {folders[-1]}")
