"""Test sets: generated and labelled once, and kept in the user's cache folder.

The instances come from `ptrnet.generate`, which draws other random numbers than trainings do. So no
model has seen these instances. Answers are exact: tours are proved to be the shortest.
"""

import os
import sys
from pathlib import Path

from ptrnet import __version__
from ptrnet.data import formats
from ptrnet.data.dataset import chunks_of
from ptrnet.errors import OutputError
from ptrnet.files import atomic_path, checksum, locked
from ptrnet.labels import generate
from ptrnet.runtime import cache_folder
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset

SEED = 20_261_121
CHECKSUM = ".sha256"
# Number of instances: COUNT, or FEWER if an instance has more than MANY_ELEMENTS elements.
COUNT, FEWER, MANY_ELEMENTS = 10_000, 1000, 50


def count_for(n: int, share: float = 1.0) -> int:
    """Return the number of instances in a share of the test for n elements, at least 100."""
    return max(100, round(share * (COUNT if n <= MANY_ELEMENTS else FEWER)))


def open_test_set(task: Task, n: int, count: int) -> Dataset:
    """Return the first `count` instances of n elements, with exact answers in canonical form.

    Raises:
        OutputError: the cache folder cannot be written.
    """
    largest = max(count, count_for(n))
    path, lock = _locations(f"{task.name}-n{n}-{largest}-seed{SEED}")
    with locked(lock):  # other processes that need the same test set wait
        if not _is_whole(path):
            jobs = os.cpu_count() or 1
            generate(task.name, n, largest, output=path, strict=True, seed=SEED, jobs=jobs)
            with atomic_path(path.with_suffix(CHECKSUM)) as temporary:
                temporary.write_text(checksum(path) + "\n", encoding="utf-8")
    return next(chunks_of(formats.read(str(path), task), count))


def _is_whole(path: Path) -> bool:
    """Whether a test set exists and is undamaged. Print a line if it is damaged."""
    written = path.with_suffix(CHECKSUM)
    if not path.exists() or not written.exists():
        return False
    if written.read_bytes().strip() == checksum(path).encode():
        return True
    print(f"{path}: damaged: its checksum does not match; generated again", file=sys.stderr)
    return False


def _locations(name: str) -> tuple[Path, Path]:
    """Return the paths of a test set and of its lock, an existing file.

    Both are in a folder for this version, because other versions may draw other instances.
    """
    try:
        folder = cache_folder() / f"test-sets-{__version__}"
        folder.mkdir(parents=True, exist_ok=True)
        lock = folder / f"{name}.lock"
        lock.touch()
    except (OSError, RuntimeError) as error:
        raise OutputError(f"no folder for test sets: {error}; set XDG_CACHE_HOME") from None
    return folder / f"{name}.txt", lock
