"""The folder of a run: name it, lock it, and check the recipe and the data in it."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from ptrnet import files, model_folder, weights
from ptrnet.errors import InputError, short
from ptrnet.files import atomic_path, exists, named_failure
from ptrnet.model_folder import RECIPE
from ptrnet.training import checkpoint
from ptrnet.training.recipe import Recipe

DATA = "data.txt"
COEFFICIENTS = "coefficients.json"  # of a conditional logit
_LONGEST = 200  # longest value in a message, in characters; most paths fit
_OUTPUTS = (
    checkpoint.LAST,
    checkpoint.PREVIOUS,
    DATA,
    COEFFICIENTS,
    model_folder.TENSORS,
    model_folder.CARD,
)


def check_unused(folder: Path, *others: str) -> None:
    """Raise InputError if the folder holds files of a run, or has a shipped model's name.

    Args:
        folder: the folder of the new run. The folder may be missing.
        others: names of other files that the caller will write to the folder.
    """
    if str(folder) in weights.names():
        raise InputError(
            f"{folder}: is the name of a shipped model, which --model would load; choose another"
        )
    if exists(folder / RECIPE):
        raise InputError(
            f"{folder}: already holds a run; resume it with --resume, or name another folder"
        )
    if exists(folder / model_folder.CONFIG):
        raise InputError(f"{folder}: already holds a model; name another folder")
    for file in (*_OUTPUTS, *others):
        if exists(folder / file):
            raise InputError(f"{folder}: already holds a file {file}; name another folder")


@contextlib.contextmanager
def next_numbered(root: Path, name: str) -> Iterator[Path]:
    """Create a numbered folder for a run without `output`: `root/NAME-1`, `root/NAME-2` and so on.

    Create the folder at once, so that runs that begin at the same time get different folders. On
    exit, remove the folder if it is empty. Raises InputError if the folder cannot be created.
    """
    has_root = root.exists()
    while True:
        folder = root / f"{name}-{max(_numbers(root, name), default=0) + 1}"
        try:
            folder.mkdir(parents=True)
            break
        except FileExistsError:
            if not root.is_dir():
                raise InputError(f"{folder}: cannot be made: {root} is a file") from None
        except OSError as error:
            raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    try:
        yield folder
    finally:
        for empty in (folder,) if has_root else (folder, root):
            with contextlib.suppress(OSError):
                empty.rmdir()


def last_numbered(root: Path, name: str) -> Path:
    """Return the numbered folder of the latest run, or `root/NAME-1` if there is no run."""
    numbers = [k for k in _numbers(root, name) if exists(root / f"{name}-{k}" / RECIPE)]
    return root / f"{name}-{max(numbers, default=1)}"


def _numbers(root: Path, name: str) -> list[int]:
    paths = root.glob(f"{name}-*") if root.is_dir() else ()
    ends = (path.name.removeprefix(f"{name}-") for path in paths)
    return [int(end) for end in ends if end.isdecimal()]


def locked(folder: Path) -> AbstractContextManager[None]:
    """Lock a run's folder against other trainings. If the folder does not exist, lock nothing.

    Raises:
        InputError: another training has locked the folder.
    """
    return files.locked(folder, wait=False) if exists(folder) else contextlib.nullcontext()


def create(folder: Path) -> None:
    """Create a new run's folder. Raises InputError if the folder cannot be created."""
    with named_failure(f"{folder}: cannot be made"):
        folder.mkdir(parents=True, exist_ok=True)


def write_recipe(folder: Path, recipe: Recipe) -> None:
    """Write the recipe of a new run. Raises InputError if the folder is in use."""
    check_unused(folder)
    with atomic_path(folder / RECIPE) as temporary:
        temporary.write_text(recipe.toml(), encoding="utf-8")


def check_recipe(folder: Path, recipe: Recipe) -> None:
    """Raise InputError unless the folder holds a run of this recipe."""
    if not exists(folder / RECIPE):
        raise InputError(f"{folder}: there is no run to resume")
    before, now = Recipe.read(folder / RECIPE).table(), recipe.table()
    for key in now:
        if before.get(key) != now[key]:
            raise InputError(
                f"{folder / RECIPE}: the run has {key} = {short(before.get(key), _LONGEST)}, "
                f"and cannot be resumed with {short(now[key], _LONGEST)}"
            )


def pin_data(folder: Path, fingerprint: str, path: str) -> None:
    """Record the fingerprint of a run's data. If the run has one already, compare the two.

    Raises:
        InputError: the run began with other data. The message names `path`.
    """
    pinned = folder / DATA
    if pinned.exists():
        if pinned.read_text(encoding="utf-8", errors="replace").strip() != fingerprint:
            raise InputError(f"{path}: has changed since the run began; begin another")
        return
    with atomic_path(pinned) as temporary:
        temporary.write_text(fingerprint + "\n", encoding="utf-8")
