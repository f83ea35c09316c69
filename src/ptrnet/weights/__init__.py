"""The shipped models: a folder for each, with `config.json`, `model.safetensors` and a card."""

import json
import os
from pathlib import Path
from typing import Any

from ptrnet.errors import unknown
from ptrnet.pretrained import model_folder
from ptrnet.solver import Solver

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The shipped models."""
    return sorted(p.parent.name for p in _FOLDER.glob(f"*/{model_folder.CONFIG}"))


def folder(name: str) -> Path:
    """The folder of a shipped model. Raises InputError, with the nearest name, if unknown."""
    if name not in names():
        raise unknown("model", name, names())
    return _FOLDER / name


def summary(name: str) -> dict[str, Any]:
    """A shipped model in a list of models: its name, task, sizes, scores by size and file."""
    config = json.loads((folder(name) / model_folder.CONFIG).read_text(encoding="utf-8"))
    trained = config["trained"]
    return {
        "name": name,
        "task": config["task"],
        "model": config["model"],
        "n": trained["n"],
        "scores": trained.get("scores", []),
        "file": str(folder(name) / model_folder.TENSORS),
    }


def load(name: str | Path) -> Solver:
    """A trained model, ready to solve instances.

    Args:
        name: a shipped model ("hull"), a folder that `save_pretrained` or a training wrote, or
            the id of a repository on the Hugging Face hub, "owner/name", or
            "owner/name@revision" of a branch, a tag or a commit.

    Raises:
        ModelError: the files are broken, or the hub has none.
        InputError: no such name; the nearest is suggested.
    """
    text = str(name)
    if text in names():
        return Solver.from_pretrained(folder(text))
    # os.path.exists, because Path.exists raises for names that are too long.
    if not os.path.exists(text) and Path(text).name == text:  # noqa: PTH110
        raise unknown("model", text, names())
    return Solver.from_pretrained(name)
