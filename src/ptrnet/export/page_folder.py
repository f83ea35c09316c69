"""The folder that `ptrnet export --page` writes: the page with models, answering in the browser."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ptrnet.errors import InputError
from ptrnet.export.folder import check_folder, export_onnx
from ptrnet.export.web_runtime import check_runtime, copy_runtime
from ptrnet.files import atomic_folder
from ptrnet.page import files
from ptrnet.pretrained.model_folder import registered_name
from ptrnet.solver import Solver

TASKS = ("hull", "delaunay", "tsp", "sort")  # which the page draws, and whose answers it checks
MODELS, RUNTIME = "models", "runtime"


def export_page(
    models: Mapping[str, Solver],
    folder: str | PathLike[str],
    *,
    runtime: str | PathLike[str] | None = None,
    weights: Literal["float32", "int8"] = "float32",
    instances: int = 100,
    seed: int = 0,
) -> dict[str, Any]:
    """Writes the page as files that any web server gives: models answer in the browser.

    Args:
        models: by the names that the page shows.
        folder: a new one, or an empty one.
        runtime: a folder with onnxruntime's files for browsers; None: npm fetches them.
        weights: this and the next two as in `export_onnx`, for each model.
        instances: answered to check each model.
        seed: of what is drawn.

    Returns:
        The manifest of each model, by its name.

    Raises:
        InputError: no model, one that the page cannot draw, a folder that cannot be written, or no
            runtime. Nothing is written then.
        MissingExtraError, ModelError: as in `export_onnx`.
    """
    path, source = Path(folder).absolute(), None if runtime is None else Path(runtime)
    if not models:
        raise InputError("models: expected one or more, got none")
    for name, solver in models.items():
        _check_model(name, solver)
    check_folder(path)
    check_runtime(source)
    manifests: dict[str, Any] = {}
    with atomic_folder(path) as temporary:
        (temporary / RUNTIME).mkdir()
        copy_runtime(temporary / RUNTIME, source)
        (temporary / MODELS).mkdir()
        for name, solver in models.items():
            manifests[name] = export_onnx(
                solver,
                temporary / MODELS / name,
                weights=weights,
                instances=instances,
                seed=seed,
            )
        listed = [_listed(name, solver) for name, solver in models.items()]
        text = json.dumps(listed, indent=2) + "\n"
        (temporary / MODELS / "models.json").write_text(text, encoding="utf-8")
        _copy_page(temporary)
    return manifests


def _check_model(name: str, solver: Solver) -> None:
    if solver.task.name not in TASKS:
        raise InputError(
            f"{name}: the page draws {', '.join(TASKS)}; this model is of task {solver.task.name}"
        )
    if solver.task.order != "given":
        raise InputError(
            f"{name}: the page reads elements in the order given, this model in "
            f"{solver.task.order} order"
        )


def _listed(name: str, solver: Solver) -> dict[str, Any]:
    """A model in the list of models, with the fields of a service's."""
    return {
        "name": name,
        "task": solver.task.name,
        "model": registered_name(solver.model),
        "features": solver.task.num_features,
        "n": solver.trained.get("n"),
        "scores": solver.trained.get("scores", []),
    }


def _copy_page(folder: Path) -> None:
    (folder / files.INDEX).write_bytes(files.static_index())
    for name, content in files.parts().items():
        path = folder / files.BELOW / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
