"""The shipped models. Each has a folder with `config.json`, `model.safetensors` and a card."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from ptrnet import model_folder
from ptrnet.errors import InputError, unknown
from ptrnet.models import CHOOSER
from ptrnet.solver import Solver

if TYPE_CHECKING:
    from ptrnet.weights.chooser import Chooser

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Return the names of the shipped models."""
    return sorted(p.parent.name for p in _FOLDER.glob(f"*/{model_folder.CONFIG}"))


def folder(name: str) -> Path:
    """Return the folder of a shipped model. Raises InputError if the name is unknown."""
    if name not in names():
        raise unknown("model", name, names())
    return _FOLDER / name


def summary(name: str) -> dict[str, Any]:
    """Return a summary of a shipped model: task, sizes, scores by size, and file."""
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


@overload
def load(name: Literal["chooser"]) -> "Chooser": ...  # type: ignore[overload-overlap]
@overload
def load(name: str | Path, **settings: Any) -> Solver: ...
def load(name: str | Path, **settings: Any) -> "Solver | Chooser":
    """Return a trained model, or the chooser, which takes examples and returns a model.

    Args:
        name: "chooser", a shipped model ("hull"), a folder that `save_pretrained` or a training
            wrote, or the id of a repository on the Hugging Face hub, "owner/name". The id may end
            with a branch, a tag or a commit: "owner/name@revision".
        settings: settings of the task that one network serves alike (`Facts.free_settings`), such
            as `direction` of a page.

    Raises:
        ModelError: the files are damaged, or the hub has no such model.
        InputError: the name is unknown. The message suggests the nearest name.

    Examples:
        >>> model = ptrnet.load("hull")
        >>> model.solve([[0, 0], [1, 0], [0, 1], [0.2, 0.2]])
        array([0, 1, 2])
    """
    if name == CHOOSER:
        from ptrnet.weights.chooser import Chooser

        return Chooser()
    text, is_shipped = str(name), str(name) in names()
    # os.path.exists, because Path.exists raises for names that are too long.
    if not (is_shipped or os.path.exists(text)) and Path(text).name == text:  # noqa: PTH110
        raise unknown("model", text, names())
    solver = Solver.from_pretrained(folder(text) if is_shipped else name)
    return solver._with_settings(settings) if settings else solver


def load_named(texts: Iterable[str]) -> dict[str, Solver]:
    """Return several models by name.

    A shipped model keeps its name. The name of another model is the last part of its folder's
    path or of its hub id.

    Raises:
        InputError: there is no such model, or two have the same name.
    """
    models: dict[str, Solver] = {}
    for text in texts:
        name = text if text in names() else Path(text).resolve().name
        if name in models:
            raise InputError(f"{text}: there is a model named {name} already")
        models[name] = load(text)
    return models


def facts(name: str, solver: Solver) -> dict[str, Any]:
    """Return the facts about a model that the page shows."""
    task, n = solver.task, solver.trained.get("n")
    return {
        "name": name,
        "task": task.name,
        "model": model_folder.registered_name(solver.model),
        "features": task.facts.num_features,
        "fields": list(task.facts.schema.fields) if task.facts.schema else [],
        "labels": list((task.facts.instance_format or {}).get("labels", ())),
        "settings": {key: getattr(task, key) for key in task.facts.free_settings},
        "n": None if n is None else str(n),
        "scores": solver.trained.get("scores", []),
    }
