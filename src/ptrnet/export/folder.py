"""Write the folder of `ptrnet export`. If a check fails, no folder is written."""

import json
import shutil
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ptrnet.errors import InputError, ModelError, check_int, check_package, short, unknown
from ptrnet.export.agreement import TOLERANCE, compare, fresh_instances
from ptrnet.export.graphs import OnnxModel, write_graphs
from ptrnet.export.manifest import EXAMPLE, MANIFEST, describe, with_files
from ptrnet.export.quantize import accuracy_lost, quantize_graphs
from ptrnet.files import atomic_folder, exists
from ptrnet.solver import Solver

WEIGHTS = ("float32", "int8")


def check_extra() -> None:
    """Raise MissingExtraError if a package of the extra `export` is not installed."""
    for package in ("onnx", "onnxruntime"):
        check_package(package, "export", "export")


def check_folder(folder: Path) -> None:
    """Raise an error for a path that exists and is not an empty folder.

    Raises:
        InputError: the path is a file, or a folder that is not empty or cannot be read.
        MissingExtraError: a package of the extra `export` is not installed.
    """
    check_extra()
    try:
        reason = "is not empty" if exists(folder) and any(folder.iterdir()) else ""
    except OSError as error:
        reason = str(error.strerror)
    if reason:
        raise InputError(f"{folder}: expected a new or an empty folder: {reason}")


def export_onnx(
    solver: Solver,
    folder: str | PathLike[str],
    *,
    weights: Literal["float32", "int8"] = "float32",
    instances: int = 100,
    seed: int = 0,
) -> dict[str, Any]:
    """Write a model as two ONNX graphs for programs in any language; see `docs/export.md`.

    The graphs are `encoder.onnx` and `step.onnx`. `manifest.json` says how to use the graphs,
    and `example.py` is a program that uses them. The folder is written only if onnxruntime gives
    the same answers as PyTorch on random instances, except at ties. Log-probabilities may differ by
    1e-4 or by 4 times PyTorch's float32 error, whichever is larger.

    Args:
        solver: the model and its task, as `ptrnet.load` gives them.
        folder: a new or empty folder.
        weights: "int8" rounds the weights of matrix products after the check. The manifest then
            has the loss of accuracy under `quantization`.
        instances: the number of instances for the check, and for the loss of accuracy.
        seed: the seed of the instances, 0 or more.

    Returns:
        The content of the manifest.

    Raises:
        InputError: the folder cannot be written or is not empty, or an argument is out of range.
        MissingExtraError: onnx or onnxruntime is not installed.
        ModelError: the graphs do not compute what the model computes. Then nothing is written.

    Examples:
        >>> manifest = ptrnet.export_onnx(ptrnet.load("hull"), "hull-onnx")
        >>> sorted(manifest["files"])
        ['encoder.onnx', 'example.py', 'step.onnx']
    """
    if not isinstance(solver, Solver):
        raise InputError(f"expected a model as ptrnet.load gives it, got {short(solver)}")
    path = Path(folder).absolute()
    if weights not in WEIGHTS:
        raise unknown("weights", weights, WEIGHTS)
    instances, seed = check_int("instances", instances, 1), check_int("seed", seed, 0)
    if not solver.task.facts.in_torch:
        raise InputError(
            f"export: the states of {solver.task.name} are computed in NumPy, and an ONNX graph "
            "cannot contain NumPy code; write its methods with `array_namespace`, and set "
            "`array_api = True`"
        )
    check_folder(path)
    model = deepcopy(solver.model).cpu().float()
    with atomic_folder(path) as temporary:
        manifest = _write(Solver(model, solver.task, solver.trained), temporary, instances, seed)
        if weights == "int8":
            whole = Solver(OnnxModel(temporary, model), solver.task)
            quantize_graphs(temporary)
            rounded = Solver(OnnxModel(temporary, model), solver.task)
            manifest["quantization"] = accuracy_lost(solver, whole, rounded, instances, seed)
        shutil.copyfile(Path(__file__).with_name(EXAMPLE), temporary / EXAMPLE)
        manifest = with_files({**manifest, "weights": weights}, temporary)
        text = json.dumps(manifest, indent=2) + "\n"
        (temporary / MANIFEST).write_text(text, encoding="utf-8")
    result: dict[str, Any] = json.loads(text)
    return result


def _write(solver: Solver, folder: Path, instances: int, seed: int) -> dict[str, Any]:
    """Write the graphs, compare them with PyTorch, and return what the manifest says of them."""
    graphs = write_graphs(solver.model, folder)
    exported = OnnxModel(folder, solver.model)
    drawn = fresh_instances(solver, instances, seed)
    try:
        agreement = compare(solver.model, exported, solver.task, drawn)
    except Exception as failure:  # the exceptions of onnxruntime have no common base
        if not type(failure).__module__.startswith("onnxruntime"):
            raise
        raise ModelError(
            f"not exported: onnxruntime fails: {str(failure).splitlines()[0][:200]}; perhaps the "
            "graphs only work for the sizes with which they were recorded: a network has to read "
            "sizes from shapes (x.shape[0], not len(x))"
        ) from None
    error = agreement.error()
    if error:
        raise ModelError(f"not exported: in onnxruntime {error}")
    return {**describe(solver, graphs), "checked": {**agreement._asdict(), "tolerance": TOLERANCE}}
