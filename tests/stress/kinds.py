"""The kinds of files that ptrnet writes and reads again, with what the damage trials need."""

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch

import ptrnet
from ptrnet import model_folder, tasks
from ptrnet.data import formats
from ptrnet.data.stored import open_file
from ptrnet.labels import generate_dataset
from ptrnet.serve.limits import Limits
from ptrnet.serve.requests import parse_array
from ptrnet.serve.schemas import MethodOptions
from ptrnet.training import checkpoint
from ptrnet.types import Example
from ptrnet_lab.reproduce import records, testsets
from tests.stress import rereading
from tests.support.small_models import small_solver

COUNT = 600  # examples of a job: two whole chunks, and a part of a chunk


class Kind(NamedTuple):
    """A kind of files in a folder. The trials damage one file at a time."""

    name: str
    make: Callable[[Path], None]  # writes the files into a folder
    files: tuple[str, ...]  # patterns of the files to damage
    load: Callable[[Path], Any]  # reads the folder, for a comparison
    reread: Callable[[Path], Any] | None = None  # reads it by other code, if there is no checksum


def plain(value: Any) -> Any:
    """Return the value as lists, numbers and texts, which can be compared."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def _make_checkpoint(folder: Path) -> None:
    state = small_solver().model.state_dict()
    content = {"global_step": 7, "state_dict": state, "optimizer": {}, "best": {}}
    checkpoint.write(folder / "a.ckpt", content)


def _make_model(folder: Path) -> None:
    small_solver("sort").save_pretrained(folder)


def _load_model(folder: Path) -> Any:
    saved = model_folder.load(folder)
    settings = saved.model.settings(), saved.task, saved.trained
    return plain([*settings, saved.model.state_dict()])


def _make_memmap(folder: Path) -> None:
    task = tasks.get("hull")
    formats.write(str(folder / "a.txt"), generate_dataset(task, [3, 5], 40, seed=1), task)
    open_file(str(folder / "a.txt"), task)


def _load_memmap(folder: Path) -> Any:
    examples = open_file(str(folder / "a.txt"), tasks.get("hull"))
    return plain([examples.elements, examples.indices, examples.sizes])


@contextlib.contextmanager
def never_finished() -> Iterator[None]:
    """Stop a job before its end, so that it leaves its folder."""
    stop = mock.patch("ptrnet.sinks._join", side_effect=KeyboardInterrupt)
    with stop, contextlib.suppress(KeyboardInterrupt), _silent():
        yield


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    with contextlib.redirect_stderr(io.StringIO()):
        yield


def _generate(folder: Path) -> bytes:
    ptrnet.generate("sort", 4, COUNT, output=folder / "a.jsonl")
    return (folder / "a.jsonl").read_bytes()


def _unlabelled(folder: Path) -> Path:
    """Write a file of instances, always at the same place: the key of a job has its path."""
    path = folder.parent / "instances.txt"
    if not path.exists():
        rows = np.random.default_rng(0).random((COUNT, 3)).tolist()
        path.write_text("".join(" ".join(map(repr, row)) + "\n" for row in rows))
    return path


def _label(folder: Path) -> bytes:
    ptrnet.label("sort", _unlabelled(folder), output=folder / "a.txt")
    return (folder / "a.txt").read_bytes()


def _solve(folder: Path) -> bytes:
    solver = small_solver("sort", scale=8.0)
    solver.solve_file(_unlabelled(folder), folder / "a.txt")
    return (folder / "a.txt").read_bytes()


def _partial(work: Callable[[Path], bytes]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        with never_finished():
            work(folder)

    return make


def _make_records(folder: Path) -> None:
    metrics = {"accuracy": {"value": 0.9375, "low": 0.92, "high": 0.95, "count": 1000}}
    record = records.Record(
        "n5", "ours", "full", "0f" * 32, "runs/a", "greedy", 1000, metrics, {"accuracy": 92.0},
        {"accuracy": 1.75}, {}, "ptrnet reproduce", 1, "0123abc", "two cores", 12.5, 640_000,
    )  # fmt: skip
    records.write("vinyals2015/table1", folder, [record])


def _load_records(folder: Path) -> Any:
    return records.read("vinyals2015/table1", folder)


def _load_test_set(folder: Path) -> Any:
    few = mock.patch.multiple(testsets, COUNT=100, FEWER=100)
    cache = mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(folder)})
    with few, cache:
        examples = testsets.open_test_set(tasks.get("sort"), 3, 100)
    return plain([[e.inputs, e.outputs] for e in examples])


def _load_npy(folder: Path) -> Any:
    body = (folder / "a.npy").read_bytes()
    question = parse_array(MethodOptions(), body, tasks.get("hull"), Limits())
    return plain([example.inputs for example in question.data])


def _reread_npy(folder: Path) -> Any:
    array = np.load(folder / "a.npy", allow_pickle=False).astype(float)
    return plain(list(array if array.ndim == 3 else array[None]))


def _text(extension: str, task: str, n: int, count: int) -> Kind:
    """Make a kind: examples of a task in a text format or in Parquet."""
    path = f"a.{extension}"

    def make(folder: Path) -> None:
        kind = tasks.get(task)
        examples = list(generate_dataset(kind, [n], count, seed=2))
        if extension in ("jsonl", "parquet"):
            examples = [e.replace(extra={"name": f"row {k}"}) for k, e in enumerate(examples)]
        if extension == "tsp":
            whole = [np.floor(1000 * e.inputs) for e in examples]
            examples = [Example(inputs, distance="EUC_2D") for inputs in whole]
        formats.write(str(folder / path), examples, kind)

    def load(folder: Path) -> Any:
        examples = formats.read(str(folder / path), tasks.get(task))
        return plain([[e.inputs, e.outputs, dict(e.extra), e.distance] for e in examples])

    return Kind(extension, make, (path,), load, rereading.READERS.get(extension))


KINDS = (
    Kind(
        "checkpoint", _make_checkpoint, ("a.ckpt",), lambda f: plain(checkpoint.read(f / "a.ckpt"))
    ),
    Kind("model", _make_model, ("config.json", "model.safetensors"), _load_model),
    Kind("memmap", _make_memmap, ("a.txt.packed/*/*",), _load_memmap),
    Kind("generating", _partial(_generate), ("*.partial/*",), _generate),
    Kind("labelling", _partial(_label), ("*.partial/*",), _label),
    Kind("solving", _partial(_solve), ("*.partial/*",), _solve),
    Kind("records", _make_records, ("*.json",), _load_records),
    Kind("test-set", _load_test_set, ("ptrnet/*/*",), _load_test_set),
    Kind(
        "npy",
        lambda f: np.save(f / "a.npy", np.random.default_rng(0).random((4, 3, 2))),
        ("a.npy",),
        _load_npy,
        _reread_npy,
    ),
    _text("txt", "hull", 5, 8),
    _text("jsonl", "hull", 5, 8),
    _text("csv", "hull", 5, 1),
    _text("tsp", "tsp", 5, 1),
    _text("parquet", "hull", 5, 30),
)
