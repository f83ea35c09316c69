"""The folder that `ptrnet export --page` writes: the page, with models that answer in the browser.

The browser runs the models in onnxruntime-web. ptrnet does not contain onnxruntime-web, because
that package has 14 MB. npm fetches the pinned version, and we compare its checksum. Instead of npm,
the user can name a folder that has onnxruntime-web.
"""

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ptrnet import webpage
from ptrnet.errors import InputError
from ptrnet.export.folder import check_folder, export_onnx
from ptrnet.files import atomic_folder
from ptrnet.solver import Solver
from ptrnet.weights import facts

TASKS = ("hull", "delaunay", "tsp", "sort", "reading-order")  # the tasks that the page can draw
MODELS, RUNTIME = "models", "runtime"
PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
INTEGRITY = (  # SHA-512 of the package, as in npm's registry and lock files
    "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
)
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
LICENCES = ("LICENSE", "ThirdPartyNotices.txt")  # in the Python package of onnxruntime


def export_page(
    models: Mapping[str, Solver],
    folder: str | PathLike[str],
    *,
    runtime: str | PathLike[str] | None = None,
    weights: Literal["float32", "int8"] = "float32",
    instances: int = 100,
    seed: int = 0,
) -> dict[str, Any]:
    """Write the page and its models as files for any web server. The models run in the browser.

    Args:
        models: the models, by the names that the page shows.
        folder: a new or empty folder.
        runtime: a folder that has onnxruntime-web. None: npm fetches it.
        weights: as in `export_onnx`, for each model.
        instances: as in `export_onnx`.
        seed: as in `export_onnx`.

    Returns:
        The manifests of the models, by name.

    Raises:
        InputError: there is no model, the page cannot draw the task of a model, the folder cannot
            be written, or the runtime is missing. Then nothing is written.
        MissingExtraError, ModelError: as in `export_onnx`.
    """
    path, source = Path(folder).absolute(), None if runtime is None else Path(runtime)
    if not models:
        raise InputError("models: expected one or more, got none")
    for name, solver in models.items():
        _check_model(name, solver)
    check_folder(path)
    manifests: dict[str, Any] = {}
    with atomic_folder(path) as temporary:
        (temporary / RUNTIME).mkdir()
        copy_runtime(temporary / RUNTIME, source)
        (temporary / MODELS).mkdir()
        for name, solver in models.items():
            manifests[name] = export_onnx(
                solver, temporary / MODELS / name, weights=weights, instances=instances, seed=seed
            )
        listed = [facts(name, solver) for name, solver in models.items()]
        text = json.dumps(listed, indent=2) + "\n"
        (temporary / MODELS / "models.json").write_text(text, encoding="utf-8")
        (temporary / webpage.INDEX).write_bytes(webpage.static_index())
        for name, content in webpage.parts().items():
            part = temporary / webpage.BELOW / name
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(content)
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


def copy_runtime(folder: Path, source: Path | None) -> None:
    """Copy the runtime's files and licences into a folder.

    Args:
        folder: the folder, which exists.
        source: a folder that has the files, such as npm's package or its `dist`. None: npm
            fetches the files.

    Raises:
        InputError: a file is missing, npm fails, or the fetched package has another checksum.
    """
    import onnxruntime

    if source is None:
        _fetch(folder)
    else:
        for name in FILES:
            found = [path for path in (source / name, source / "dist" / name) if path.is_file()]
            if not found:
                raise InputError(f"--runtime {source}: expected {PACKAGE}'s files, got no {name}")
            shutil.copyfile(found[0], folder / name)
    for name in LICENCES:
        shutil.copyfile(Path(onnxruntime.__file__).with_name(name), folder / name)


def _fetch(folder: Path) -> None:
    if shutil.which("npm") is None:
        raise InputError(
            f"npm is not installed, but ptrnet needs it to fetch {PACKAGE} {VERSION}: install npm, "
            f"or pass --runtime with a folder that has {', '.join(FILES)}"
        )
    with tempfile.TemporaryDirectory() as temporary:
        command = ["npm", "pack", f"{PACKAGE}@{VERSION}", "--silent"]
        done = subprocess.run(command, cwd=temporary, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
            raise InputError(
                f"npm: {PACKAGE} {VERSION} was not fetched: {reason[:200]}; you can pass --runtime "
                "with a folder that has it instead"
            )
        (package,) = Path(temporary).glob("*.tgz")
        unpack(package, folder)


def unpack(package: Path, folder: Path) -> None:
    """Check the checksum of npm's package, and copy the runtime's files out of it.

    Raises:
        InputError: the package has another checksum.
    """
    with package.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha512").digest()
    if base64.b64encode(digest).decode() != INTEGRITY:
        raise InputError(f"npm: {PACKAGE} {VERSION}: the fetched package has another checksum")
    with tarfile.open(package) as archive:
        for name in FILES:
            content = archive.extractfile(f"package/dist/{name}")
            assert content is not None  # the package with this checksum has the file
            with (folder / name).open("wb") as stream:
                shutil.copyfileobj(content, stream)
