"""The folder of a run: whose it is, and the state it holds."""

import os
from pathlib import Path
from typing import Any

import torch

from ptrnet import model_files
from ptrnet.errors import InputError
from ptrnet.files import atomic_path
from ptrnet.training.recipe import Recipe

RECIPE, CHECKPOINT, DATA = "recipe.toml", "checkpoint.ckpt", "data.txt"
_WRITTEN = (CHECKPOINT, DATA, model_files.TENSORS, model_files.CARD)
_STATE = {"global_step", "state_dict", "callbacks", "pytorch-lightning_version"}


def check_free(folder: Path, *others: str) -> None:
    """Refuses a folder in which a run would write over a file, its own or one of `others`."""
    if _holds(folder, RECIPE):
        raise InputError(f"{folder}: holds a run already; add --resume to go on with it")
    if _holds(folder, model_files.CONFIG):
        raise InputError(f"{folder}: holds a model already; name another folder")
    for name in (*_WRITTEN, *others):
        if _holds(folder, name):
            raise InputError(f"{folder}: holds a file {name} already; name another folder")


def claim(folder: Path, recipe: Recipe) -> None:
    """Makes the folder a new run's, or refuses."""
    check_free(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    with atomic_path(folder / RECIPE) as temporary:
        temporary.write_text(recipe.toml(), encoding="utf-8")


def check_same(folder: Path, recipe: Recipe) -> None:
    """Refuses a folder that does not hold a run of this recipe."""
    if not _holds(folder, RECIPE):
        raise InputError(f"{folder}: there is no run to resume")
    theirs, ours = Recipe.read(folder / RECIPE).table(), recipe.table()
    for key in ours:
        if theirs.get(key) != ours[key]:
            raise InputError(
                f"{folder / RECIPE}: the run has {key} = {theirs.get(key)!r}, "
                f"asked to resume with {ours[key]!r}"
            )


def hold(folder: Path, key: str, name: str) -> None:
    """Notes what the file of examples is; refuses to go on with it when it has changed."""
    path = folder / DATA
    if path.exists():
        # Behind the name of the task: `custom` had another one.
        if path.read_text(encoding="utf-8").strip().partition("-")[2] != key.partition("-")[2]:
            raise InputError(f"{name}: has changed since the run began; begin another")
        return
    with atomic_path(path) as temporary:
        temporary.write_text(key + "\n", encoding="utf-8")


def state(folder: Path) -> dict[str, Any] | None:
    """What the run's last checkpoint holds; None where there is none."""
    path = folder / CHECKPOINT
    if not _holds(folder, CHECKPOINT):
        return None
    try:
        found: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        missing = sorted(_STATE - set(found))
    except Exception as error:  # of torch, zipfile and the restricted unpickler
        raise InputError(f"{path}: not a checkpoint of ours: {error}") from None
    if missing:
        raise InputError(f"{path}: not a checkpoint of ours: {missing[0]} is missing")
    return found


def _holds(folder: Path, name: str) -> bool:
    return os.path.exists(folder / name)  # noqa: PTH110  Path.exists raises for long names
