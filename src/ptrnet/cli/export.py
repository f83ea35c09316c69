"""`ptrnet export`: write a model as ONNX graphs for any language, or models as a web page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptrnet.cli.options import Json, Seed, echo
from ptrnet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


def export(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL DIR",
            help="A shipped model, a model's folder or a hub id; and a new or empty folder. With "
            "--page: only models.",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write a web page instead, on which the models answer in the browser.  [hull, "
            "delaunay, tsp, sort and reading-order]",
        ),
    ] = None,
    runtime: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="With --page: the files of onnxruntime-web.  [fetched by npm]"
        ),
    ] = None,
    quantize: Annotated[
        bool, typer.Option("--quantize", help="Weights of 8 bits; prints the loss of accuracy.")
    ] = False,
    instances: Annotated[
        int,
        typer.Option(
            min=1, help="Number of instances on which to check the graphs and measure --quantize."
        ),
    ] = 100,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Write MODEL as two ONNX graphs: encoder.onnx, and step.onnx, which runs once for each token.

    manifest.json describes the graphs for programs in other languages. example.py decodes with
    onnxruntime and NumPy alone. DIR is written only if onnxruntime gives the same answers as
    PyTorch on random instances. Their log-probabilities may differ by 1e-4 or by 4 times PyTorch's
    float32 error, whichever is larger. The command needs an extra: pip install "ptrnet[export]".

    Examples:
        ptrnet export hull hull-onnx
        ptrnet export --page site hull tsp
    """
    from json import dumps

    from ptrnet import weights
    from ptrnet.export.folder import export_onnx
    from ptrnet.export.page import TASKS, export_page

    words = arguments or []
    checks: dict[str, Any] = {
        "weights": "int8" if quantize else "float32",
        "instances": instances,
        "seed": seed,
    }
    if page is not None:
        models = weights.load_named(words or TASKS)
        manifests = export_page(models, page, runtime=runtime, **checks)
        echo(dumps(manifests) if json else "\n".join(_page_lines(page, manifests)))
        return
    if runtime is not None:
        raise InputError("--runtime has no effect without --page")
    if len(words) != 2:
        raise InputError(f"export: expected MODEL and DIR, got {len(words)} arguments")
    manifest = export_onnx(weights.load(words[0]), words[1], **checks)
    echo(dumps(manifest) if json else "\n".join(_lines(words[1], manifest)))


def _page_lines(folder: Path, manifests: dict[str, Any]) -> "Iterator[str]":
    for name, manifest in manifests.items():
        yield from _lines(str(folder / "models" / name), manifest)
    yield f"to view it: python -m http.server --directory {folder} 8080, then http://127.0.0.1:8080"


def _lines(folder: str, manifest: dict[str, Any]) -> "Iterator[str]":
    from ptrnet.metrics import Measure

    sizes = (f"{name} {file['bytes'] / 1e6:.2f} MB" for name, file in manifest["files"].items())
    yield f"{folder}: {', '.join(sizes)}, manifest.json"
    checked = manifest["checked"]
    exact = checked["float32_error"]
    yield (
        f"checked on {checked['instances']} instances: the same answers as PyTorch's, "
        f"log-probabilities equal to {checked['log_prob_error']:.1g}"
        + (f" (PyTorch's float32 error: {exact:.1g})" if exact else "")
    )
    if "quantization" not in manifest:
        return
    rounded = manifest["quantization"]
    yield f"int8 and float32 give equal answers to {rounded['equal_answers']:.1%} of instances"
    for name, values in rounded["metrics"].items():
        before, after = (Measure(**values[kind]).text(3) for kind in ("float32", "int8"))
        yield f"{name:<18}float32 {before}, int8 {after}"
