"""The training step that is measured: the next batch of a stream, losses, clipping, optimiser."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from statistics import mean
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from ptrnet import models
from ptrnet.bench.naive import NaivePtrNet
from ptrnet.bench.products import Product, ProductsAlone, record_products
from ptrnet.data.streams.batch_stream import BatchStream
from ptrnet.data.streams.cut_stream import CutStream
from ptrnet.data.streams.example_stream import ExampleStream
from ptrnet.models.base import PointerModel
from ptrnet.training.graphs import GraphLosses
from ptrnet.training.hardware import matmul_precision, precision_of
from ptrnet.training.losses import cut_losses, losses
from ptrnet.training.optimizers import optimizer
from ptrnet.training.recipe import Recipe
from ptrnet.types import Batch, CutBatch

TrainingBatch = Batch | CutBatch
Step = Callable[[Any], None]  # takes the kind of training batch that the recipe has


class TrainingStep:
    """A step on the next batch of a stream, which notes how long it waited for the batch.

    Args:
        step: takes a batch on the device.
        batches: without end.
        device: where the step is taken.
    """

    batch: TrainingBatch  # the latest

    def __init__(self, step: Step, batches: Iterable[TrainingBatch], device: str) -> None:
        self._step, self._batches, self._device = step, iter(batches), device
        self._waits: list[float] = []  # milliseconds, by step
        self.answer_widths: list[int] = []  # tokens, padding included, by step

    @classmethod
    def on_fresh_examples(
        cls, make_step: Callable[[Recipe], Step], recipe: Recipe
    ) -> "TrainingStep":
        """A step on examples that are drawn and labelled as it goes, quickly for tours."""
        task = recipe.task
        labeller = "a1" if "a1" in task.labellers else None  # the shortest would take too long
        stream: BatchStream[Any] = ExampleStream(
            task, recipe.n, recipe.batch_size, recipe.seed, labeller=labeller
        )
        if recipe.cuts:
            stream = CutStream(stream, task, recipe.cuts, recipe.seed)
        return cls(make_step(recipe), stream, recipe.device)

    def __call__(self) -> None:
        """The next step."""
        start = perf_counter()
        batch = next(self._batches)
        self._waits.append(1000 * (perf_counter() - start))
        values = (x.to(self._device) if isinstance(x, Tensor) else x for x in batch)
        self.batch = type(batch)(*values)  # type: ignore[arg-type]
        self.answer_widths.append(batch.targets.shape[1])
        self._step(self.batch)

    @property
    def waiting_ms(self) -> float:
        """Mean wait for a batch; the first, which could not be made ahead, is not counted."""
        return mean(self._waits[1:])


class StepProducts:
    """The matrix products alone of the latest step, on the same batch.

    The first call after a step records them, which is no time to be measured.
    """

    def __init__(self, recipe: Recipe, step: TrainingStep) -> None:
        self._record, self._step, self._device = recorder(recipe), step, recipe.device
        self._batch: TrainingBatch | None = None

    def __call__(self) -> None:
        if self._step.batch is not self._batch:
            self._batch = self._step.batch
            self._products = ProductsAlone(self._record(self._batch), self._device)
        self._products()


def recorder(recipe: Recipe) -> Callable[[TrainingBatch], Counter[Product]]:
    """A function that gives the products of the library's step on a batch."""
    model = _model(recipe)
    loss = _loss(recipe, partial(cut_losses if recipe.cuts else losses, model))
    parameters = list(model.parameters())

    def record(batch: TrainingBatch) -> Counter[Product]:
        return record_products(
            lambda: torch.autograd.grad(loss(batch), parameters, allow_unused=True)
        )

    return record


def ptrnet_step(recipe: Recipe) -> Step:
    """The library's step: products in the recipe's precision."""
    model = _model(recipe)
    if recipe.cuts:
        step = _step(recipe, model, _loss(recipe, partial(cut_losses, model)))
    else:
        model_losses = GraphLosses(model) if recipe.device == "cuda" else partial(losses, model)
        step = _step(recipe, model, _loss(recipe, model_losses))
    precision = precision_of(recipe.precision, recipe.device)

    def step_in_precision(batch: TrainingBatch) -> None:
        with matmul_precision(precision, recipe.device):
            step(batch)

    return step_in_precision


def naive_step(recipe: Recipe) -> Step:
    """The step of a Ptr-Net written the usual way, in float32."""
    model = NaivePtrNet.from_ptr_net(_model(recipe))
    return _step(recipe, model, model.loss)


def _model(recipe: Recipe) -> PointerModel:
    torch.manual_seed(recipe.seed)
    size = recipe.task.num_features, recipe.task.num_specials
    return models.kind(recipe.model)(*size, recipe.network).to(recipe.device)


def _loss(
    recipe: Recipe, model_losses: Callable[[Any], tuple[Tensor, Tensor]]
) -> Callable[[Any], Tensor]:
    """The loss of a batch, large products in bfloat16 where the recipe says so."""
    precision = precision_of(recipe.precision, recipe.device)

    def loss(batch: TrainingBatch) -> Tensor:
        with torch.autocast(recipe.device, torch.bfloat16, enabled=precision == "bfloat16"):
            return model_losses(batch)[0]

    return loss


def _step(recipe: Recipe, model: nn.Module, loss: Callable[[Any], Tensor]) -> Step:
    optimizer_ = optimizer(recipe, model.parameters())

    def step(batch: TrainingBatch) -> None:
        optimizer_.zero_grad()
        loss(batch).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer_.step()

    return step
