"""The time of greedy decoding in onnxruntime and in PyTorch, including the encoder.

Both sides run the same search under the task's constraint, on the same instances and with the same
number of threads. Each run of the benchmark exports the graphs anew, as `ptrnet export` does.
"""

import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import torch

from ptrnet import models, tasks, weights
from ptrnet.data import checks
from ptrnet.decoding import Greedy
from ptrnet.errors import InputError
from ptrnet.export.folder import check_extra
from ptrnet.export.graphs import OnnxModel, write_graphs
from ptrnet.models.base import PointerModel
from ptrnet.types import Sizes
from ptrnet_lab.bench.harness import Row, Side, measure
from ptrnet_lab.bench.solve import Questions, Run, check_batch


def rows(
    task: str | None = None,
    n: int | None = None,
    batch_size: int = 1,
    repeats: int = 40,
    seed: int = 0,
) -> Iterator[Row]:
    """A row for each shipped model. With `task`, a row for each model of that task.

    By default, n is the largest size that the model was trained on.

    Raises:
        InputError: the task is unknown or has no shipped model, or the instances cannot be
            answered.
        MissingExtraError: onnx or onnxruntime is not installed.
    """
    check_extra()
    if task is not None:
        tasks.kind(task)
    batches = []
    for name in weights.names():
        summary = weights.summary(name)
        # The steps of problems mostly measure the loops of their rules, not the network.
        if task in (None, summary["task"]) and summary["model"] != models.STATES:
            size = Sizes(n or summary["n"])[-1]
            checks.check_sizes([size], tasks.get(summary["task"]))
            check_batch(batch_size, size)
            batches.append(Questions(name, size, batch_size, seed=seed))
    if not batches:
        raise InputError(f"task: expected the task of a model that can be exported, got {task}")
    return chain.from_iterable(_rows_of(questions, repeats) for questions in batches)


def _rows_of(questions: Questions, rounds: int) -> Iterator[Row]:
    setups = {
        "onnxruntime": partial(onnxruntime, questions),
        "PyTorch": partial(pytorch, questions),
    }
    runs = {name: setup() for name, setup in setups.items()}
    sides = {name: Side(run, warmups=1) for name, run in runs.items()}
    measured = measure(setups, sides, rounds, f"export, {questions.model}")
    steps = runs["PyTorch"]().shape[2]
    yield measured.row(
        "onnxruntime",
        "export",
        questions.model,
        count=questions.batch_size,
        unit="instances",
        facts={
            "n": questions.n,
            "batch_size": questions.batch_size,
            "threads": torch.get_num_threads(),
            "decoder_steps": steps,
        },
        baseline=measured.baseline("PyTorch", "PyTorch", than="onnxruntime"),
        note=f"{steps} steps",
    )


def pytorch(questions: Questions) -> Run:
    """Return a function that decodes with the shipped model in PyTorch."""
    return _greedy(questions, weights.load(questions.model).model)


def onnxruntime(questions: Questions) -> Run:
    """Return a function that decodes with the exported graphs in onnxruntime."""
    model = weights.load(questions.model).model
    with tempfile.TemporaryDirectory() as folder:
        write_graphs(model, Path(folder))
        return _greedy(questions, OnnxModel(Path(folder), model))


def _greedy(questions: Questions, model: PointerModel) -> Run:
    constraint, tensors = questions.solver().task, questions.tensors()
    return lambda: Greedy().decode(model, *tensors, constraint).tokens
