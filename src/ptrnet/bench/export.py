"""The time of an answer in onnxruntime and in PyTorch: the encoder, then greedy steps.

Both sides run the same search under the task's constraint, on the same instances and with the same
number of threads. The graphs are recorded afresh, by the code of `ptrnet export`.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ptrnet import tasks, weights
from ptrnet.bench.harness import Baseline, Case, Result, Row, Setup, Side, measure
from ptrnet.data import checks
from ptrnet.data.sizes import Sizes
from ptrnet.data.symmetries import permute_elements
from ptrnet.decoding import Greedy
from ptrnet.errors import InputError
from ptrnet.export.folder import check_extra
from ptrnet.export.graphs import OnnxModel, write_graphs
from ptrnet.models.base import PointerModel
from ptrnet.training.recipe import LARGEST_BATCH

ONNXRUNTIME, PYTORCH = "onnxruntime", "PyTorch"  # sides


def rows(
    task: str | None = None,
    n: int | None = None,
    batch_size: int = 1,
    repeats: int = 40,
    seed: int = 0,
) -> Iterator[Row]:
    """A row for each shipped model, of all tasks or of one, by default at its largest trained n.

    Raises:
        InputError: an unknown task, or instances that cannot be answered.
        MissingExtraError: onnx or onnxruntime is not installed.
    """
    check_extra()
    if task is not None:
        tasks.kind(task)
    names = [name for name in weights.names() if task in (None, weights.summary(name)["task"])]
    cases = []
    for name in names:
        (*_, size) = Sizes(n or weights.summary(name)["n"])
        checks.check_sizes([size], tasks.get(weights.summary(name)["task"]))
        if batch_size * size > LARGEST_BATCH:
            raise InputError(f"batch size: {batch_size} instances of {size} are too many elements")
        cases.append(Answering(Questions(name, size, batch_size, seed), repeats))
    return measure("export", cases)


@dataclass(frozen=True)
class Questions:
    """A batch of fresh instances for a shipped model."""

    model: str
    n: int
    batch_size: int
    seed: int

    def greedy(self, model: PointerModel) -> Callable[[], Tensor]:
        """A function that answers the batch by a model, and returns the tokens `(B, 1, M)`."""
        task = weights.load(self.model).task
        drawn = task.sample(np.random.default_rng(self.seed), self.batch_size, self.n)
        read = permute_elements(drawn, task.element_order(drawn)).astype(np.float32)
        inputs, constraint = torch.from_numpy(read), task.build_constraint()
        lengths, max_lengths = (
            torch.full((self.batch_size,), size) for size in (self.n, task.max_length(self.n))
        )
        return lambda: Greedy().decode(model, inputs, lengths, max_lengths, constraint).tokens


class Answering(Case):
    """One model on one batch, in either runtime."""

    def __init__(self, questions: Questions, rounds: int) -> None:
        self.questions, self.rounds, self.title = questions, rounds, questions.model

    def setups(self) -> dict[str, Setup]:
        return {name: partial(run, self.questions) for name, run in RUNTIMES.items()}

    def sides(self) -> dict[str, Side]:
        self.runs = {name: run(self.questions) for name, run in RUNTIMES.items()}
        return {name: Side(run, warmups=1) for name, run in self.runs.items()}

    def rows(self, result: Result) -> Iterator[Row]:
        questions, steps = self.questions, self.runs[PYTORCH]().shape[2]
        yield Row(
            measurement="export",
            name=questions.model,
            time=result.spread(ONNXRUNTIME),
            count=questions.batch_size,
            unit="instances",
            facts={
                "n": questions.n,
                "batch_size": questions.batch_size,
                "threads": torch.get_num_threads(),
                "decoder_steps": steps,
            },
            baseline=Baseline(
                PYTORCH,
                result.median(PYTORCH),
                result.ratio(PYTORCH, ONNXRUNTIME),
                result.peak_mb[PYTORCH],
            ),
            peak_mb=result.peak_mb[ONNXRUNTIME],
            note=f"{steps} steps",
        )


def pytorch(questions: Questions) -> Callable[[], Tensor]:
    """A function that runs the shipped model itself."""
    return questions.greedy(weights.load(questions.model).model)


def onnxruntime(questions: Questions) -> Callable[[], Tensor]:
    """A function that runs the model's exported graphs."""
    model = weights.load(questions.model).model
    with tempfile.TemporaryDirectory() as folder:
        write_graphs(model, Path(folder))
        return questions.greedy(OnnxModel(Path(folder), model))


RUNTIMES = {ONNXRUNTIME: onnxruntime, PYTORCH: pytorch}
