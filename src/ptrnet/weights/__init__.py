"""The shipped models: a folder each, with `config.json`, `model.safetensors` and a card."""

import json
import os
from pathlib import Path
from typing import Any

from ptrnet import model_files
from ptrnet.errors import unknown
from ptrnet.solver import Solver

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The shipped models."""
    return sorted(p.parent.name for p in _FOLDER.glob(f"*/{model_files.CONFIG}"))


def folder(name: str) -> Path:
    """Where a shipped model lies. Raises InputError, with the nearest name, for an unknown one."""
    if name not in names():
        raise unknown("model", name, names())
    return _FOLDER / name


def summary(name: str) -> dict[str, Any]:
    """What a list of models says of one: name, task, sizes, scores by size, and its folder."""
    config = json.loads((folder(name) / model_files.CONFIG).read_text(encoding="utf-8"))
    trained = config["trained"]
    return {
        "name": name,
        "task": config["task"],
        "model": config["model"],
        "n": trained["n"],
        "scores": trained.get("scores", []),
        "file": str(folder(name) / model_files.TENSORS),
    }


def load(name: str | Path) -> Solver:
    """A trained model, ready to answer.

    Args:
        name: a shipped model ("hull"), a folder that `save_pretrained` or a training wrote, or
            the id of a repository on the Hugging Face hub ("owner/name").

    Raises:
        ModelError: the files are broken, or the hub has none.
        InputError: no such name; the nearest is suggested.
    """
    text = str(name)
    if text in names():
        return Solver.from_pretrained(folder(text))
    if not os.path.exists(text) and Path(text).name == text:  # noqa: PTH110  names of any length
        raise unknown("model", text, names())
    return Solver.from_pretrained(name)
