"""A whole training step, examples included, beside its products and beside the naive Ptr-Net's.

AdamW and clipping, as `ptrnet train` has them; the naive step takes the same batches from the
same weights, in float32. The roofline is the time of the step's products alone (encoder, decoder
and projections, forward and backward; answers padded to the longest of the batch).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import mean
from time import perf_counter

import torch
from torch import Tensor, nn

from ptrnet import models, tasks
from ptrnet.bench import roofline
from ptrnet.bench.harness import Case, Result, measure
from ptrnet.bench.memory import Setup
from ptrnet.bench.naive import NaivePtrNet
from ptrnet.bench.row import Baseline, Row
from ptrnet.bench.timing import Side
from ptrnet.data.streams.example_stream import ExampleStream
from ptrnet.models.base import PointerModel
from ptrnet.training.graphs import GraphLosses
from ptrnet.training.hardware import device_of, matmul_precision, precision_of
from ptrnet.training.losses import losses
from ptrnet.training.optimizers import optimizer
from ptrnet.training.recipe import Recipe
from ptrnet.types import Batch

HIDDEN_SIZES = (256, 512)  # by default
NAIVE_EVERY = 4  # rounds: the naive step is about ten times as slow

Step = Callable[[Batch], None]


def rows(
    task: str = "hull",
    n: int = 50,
    batch_size: int = 128,
    hidden_size: int | None = None,
    precision: str = "auto",
    device: str = "cpu",
    repeats: int = 24,
    seed: int = 0,
) -> Iterator[Row]:
    """A row for each size of the network. Raises InputError for what cannot be trained."""
    sizes = HIDDEN_SIZES if hidden_size is None else (hidden_size,)
    recipes = [recipe_for(task, n, batch_size, h, precision, device, seed) for h in sizes]
    return measure("train", [Training(recipe, repeats) for recipe in recipes])


def recipe_for(
    task: str, n: int, batch_size: int, hidden_size: int, precision: str, device: str, seed: int
) -> Recipe:
    """What is trained. Raises InputError for what cannot be."""
    return Recipe.from_table(
        {
            "task": task,
            "n": str(n),
            "batch_size": batch_size,
            "hidden_size": hidden_size,
            "precision": precision,
            "device": device_of(device),
            "seed": seed,
        }
    )


class Training(Case):
    """The step of one size of the network."""

    def __init__(self, recipe: Recipe, rounds: int) -> None:
        self.recipe, self.rounds, self.device = recipe, rounds, recipe.device
        self.precision = precision_of(recipe.precision, recipe.device)
        self.title = f"{recipe.hidden_size} units"

    def setups(self) -> dict[str, Setup]:
        return {
            "ptrnet": partial(TrainingStep.on_fresh_examples, ptrnet_step, self.recipe),
            "naive": partial(TrainingStep.on_fresh_examples, naive_step, self.recipe),
        }

    def sides(self) -> dict[str, Side]:
        step = TrainingStep.on_fresh_examples(ptrnet_step, self.recipe)
        naive = naive_step(self.recipe)
        dtype = torch.bfloat16 if self.precision == "bfloat16" else torch.float32
        product, self.product_operations = roofline.product(dtype, self.device)

        def product_in_precision() -> None:
            with matmul_precision(self.precision, self.device):
                product()

        self.step = step
        return {
            "ptrnet": Side(step, warmups=2),
            "naive": Side(lambda: naive(step.batch), NAIVE_EVERY, warmups=1),
            "product": Side(product_in_precision),
        }

    def rows(self, result: Result) -> Iterator[Row]:
        recipe, step, time = self.recipe, self.step, result.spread("ptrnet")
        units, n, batch = recipe.hidden_size, int(recipe.n), recipe.batch_size
        slots = n + tasks.get(recipe.task).num_specials
        forward = roofline.operations(batch, units, n, slots, mean(step.answer_widths))
        rate = self.product_operations / result.median("product")
        yield Row(
            measurement="train",
            name=f"{units} units, {self.precision}",
            time=time,
            count=batch,
            unit="examples",
            facts={
                "task": recipe.task,
                "n": n,
                "batch_size": batch,
                "hidden_size": units,
                "precision": self.precision,
                "step_ms": time.median,
                "waiting_ms": step.waiting_ms,
            },
            roofline_ms=3 * forward / rate,
            baseline=Baseline(
                "naive float32",
                result.median("naive"),
                result.ratio("naive", "ptrnet"),
                result.peak_mb["naive"],
            ),
            peak_mb=result.peak_mb["ptrnet"],
            note=f"waits {step.waiting_ms:.2f} ms for data",
        )


class TrainingStep:
    """A step on the next batch of a stream, which notes how long it waited for the batch.

    Args:
        step: takes a batch on the device.
        batches: without end.
        device: where the step is taken.
    """

    batch: Batch  # the latest

    def __init__(self, step: Step, batches: Iterable[Batch], device: str) -> None:
        self._step, self._batches, self._device = step, iter(batches), device
        self._waits: list[float] = []  # milliseconds, by step
        self.answer_widths: list[int] = []  # tokens, padding included, by step

    @classmethod
    def on_fresh_examples(
        cls, make_step: Callable[[Recipe], Step], recipe: Recipe
    ) -> "TrainingStep":
        """A step on examples that are drawn and labelled as it goes, quickly for tours."""
        task = tasks.get(recipe.task)
        labeller = "a1" if "a1" in task.labellers else None  # the shortest would take too long
        stream = ExampleStream(
            task, [int(recipe.n)], recipe.batch_size, recipe.seed, labeller=labeller
        )
        return cls(make_step(recipe), stream, recipe.device)

    def __call__(self) -> None:
        """The next step."""
        start = perf_counter()
        batch = next(self._batches)
        self._waits.append(1000 * (perf_counter() - start))
        self.batch = Batch(*(tensor.to(self._device) for tensor in batch))
        self.answer_widths.append(batch.targets.shape[1])
        self._step(self.batch)

    @property
    def waiting_ms(self) -> float:
        """Mean wait for a batch; the first, which could not be made ahead, is not counted."""
        return mean(self._waits[1:])


def ptrnet_step(recipe: Recipe) -> Step:
    """The library's step: products in the recipe's precision."""
    model = _model(recipe)
    model_losses = GraphLosses(model) if recipe.device == "cuda" else partial(losses, model)
    precision = precision_of(recipe.precision, recipe.device)

    def loss(batch: Batch) -> Tensor:
        with torch.autocast(recipe.device, torch.bfloat16, enabled=precision == "bfloat16"):
            return model_losses(batch)[0]

    step = _step(recipe, model, loss)

    def step_in_precision(batch: Batch) -> None:
        with matmul_precision(precision, recipe.device):
            step(batch)

    return step_in_precision


def naive_step(recipe: Recipe) -> Step:
    """The step of a Ptr-Net written the usual way, in float32."""
    model = NaivePtrNet.from_ptr_net(_model(recipe))
    return _step(recipe, model, model.loss)


def _model(recipe: Recipe) -> PointerModel:
    torch.manual_seed(recipe.seed)
    task = tasks.get(recipe.task)
    model = models.build(recipe.model, task.num_features, task.num_specials, **recipe.network())
    return model.to(recipe.device)


def _step(recipe: Recipe, model: nn.Module, loss: Callable[[Batch], Tensor]) -> Step:
    optimizer_ = optimizer(recipe, model.parameters())

    def step(batch: Batch) -> None:
        optimizer_.zero_grad()
        loss(batch).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer_.step()

    return step
