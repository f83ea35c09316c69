"""`ptrnet export`: a model as ONNX graphs, for programs in any language."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptrnet.cli.options import Json, Seed, say

if TYPE_CHECKING:
    from collections.abc import Iterator


def register(app: typer.Typer) -> None:
    app.command()(export)


def export(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A shipped model, a model's folder or a hub id.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or an empty folder.")],
    quantize: Annotated[
        bool,
        typer.Option("--quantize", help="Weights of int8; what that costs in accuracy is said."),
    ] = False,
    instances: Annotated[
        int,
        typer.Option(
            "--instances", min=1, help="Answered to check the graphs, and to measure --quantize."
        ),
    ] = 100,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Write MODEL as two ONNX graphs, encoder.onnx and step.onnx, which is run for each token.

    manifest.json says all that a program in another language needs, and example.py decodes with
    onnxruntime and NumPy alone. Before DIR is there, onnxruntime has answered fresh instances as
    PyTorch does, with log-probabilities equal to 1e-4. Needs the extra: pip install
    "ptrnet[export]".

    Example: ptrnet export hull hull-onnx
    """
    from json import dumps

    from ptrnet import weights
    from ptrnet.export.folder import check_folder, export_onnx

    check_folder(folder.absolute())
    manifest = export_onnx(
        weights.load(model),
        folder,
        weights="int8" if quantize else "float32",
        instances=instances,
        seed=seed,
    )
    say(dumps(manifest) if json else "\n".join(_lines(folder, manifest)))


def _lines(folder: Path, manifest: dict[str, Any]) -> "Iterator[str]":
    from ptrnet.metrics.interval import Measure

    sizes = (f"{name} {file['bytes'] / 1e6:.2f} MB" for name, file in manifest["files"].items())
    yield f"{folder}: {', '.join(sizes)}, manifest.json"
    checked = manifest["checked"]
    own = f", whose own are exact to {checked['float32_error']:.1g}"
    yield (
        f"checked on {checked['instances']} instances: the same answers as PyTorch's, "
        f"log-probabilities equal to {checked['log_prob_error']:.1g}"
        f"{own if checked['float32_error'] else ''}"
    )
    if "quantization" not in manifest:
        return
    rounded = manifest["quantization"]
    yield f"int8 gives the answers of float32 to {rounded['equal_answers']:.1%}"
    for name, values in rounded["metrics"].items():
        before, after = (Measure(**values[kind]).text(3) for kind in ("float32", "int8"))
        yield f"{name:<18}float32 {before}, int8 {after}"
