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
from ptrnet.bench.memory import Work, peaks
from ptrnet.bench.naive import NaivePtrNet
from ptrnet.bench.row import Other, Row
from ptrnet.bench.timing import Side, interleaved, ratio, spread
from ptrnet.data.streams.example_stream import ExampleStream
from ptrnet.models.base import PointerModel
from ptrnet.training.graphs import GraphLosses
from ptrnet.training.hardware import device_of, matmul_precision, precision_of
from ptrnet.training.losses import losses
from ptrnet.training.optimizers import optimizer
from ptrnet.training.recipe import Recipe
from ptrnet.types import Batch

SIZES = (256, 512)  # units, where none are asked for
EVERY = 4  # rounds of which the naive side, about ten times as slow, runs in one

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
    sizes = SIZES if hidden_size is None else (hidden_size,)
    recipes = [recipe_of(task, n, batch_size, h, precision, device, seed) for h in sizes]
    return _measured(recipes, repeats)


def recipe_of(
    task: str, n: int, batch_size: int, hidden_size: int, precision: str, device: str, seed: int
) -> Recipe:
    """What is trained. Raises InputError for what cannot be."""
    table = {"task": task, "n": str(n), "batch_size": batch_size, "hidden_size": hidden_size}
    more = {"precision": precision, "device": device_of(device), "seed": seed}
    return Recipe.from_table({**table, **more})


def _measured(recipes: list[Recipe], repeats: int) -> Iterator[Row]:
    works: dict[str, Work] = {
        f"{make.__name__} {recipe.hidden_size}": partial(alone, make, recipe)
        for recipe in recipes
        for make in (ours, naive)
    }
    held = peaks(works, "train")
    for recipe in recipes:
        yield _row(recipe, repeats, held)


def _row(recipe: Recipe, repeats: int, held: dict[str, float]) -> Row:
    units, device = recipe.hidden_size, recipe.device
    precision = precision_of(recipe.precision, device)
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    product, its_operations = roofline.product(dtype, device)

    def in_its_precision() -> None:
        with matmul_precision(precision, device):
            product()

    step, naive_step = alone(ours, recipe), naive(recipe)
    sides = {
        "ours": Side(step, before=2),
        "naive": Side(lambda: naive_step(step.batch), EVERY, before=1),
        "product": Side(in_its_precision),
    }
    times = interleaved(sides, repeats, f"train, {units} units", device)
    time = spread(times["ours"].values())
    num_specials = tasks.get(recipe.task).num_specials
    n, batch = int(recipe.n), recipe.batch_size
    forward = roofline.operations(batch, units, n, n + num_specials, mean(step.widths))
    return Row(
        what="train",
        name=f"{units} units, {precision}",
        time=time,
        count=batch,
        unit="examples",
        facts={
            "task": recipe.task,
            "n": n,
            "batch_size": batch,
            "hidden_size": units,
            "precision": precision,
            "step_ms": time.median,
            "waiting_ms": step.waiting,
        },
        roofline_ms=3 * forward / its_operations * spread(times["product"].values()).median,
        other=Other(
            "naive float32",
            spread(times["naive"].values()).median,
            ratio(times["naive"], times["ours"]),
            held[f"naive {units}"],
        ),
        peak_mb=held[f"ours {units}"],
        note=f"waits {step.waiting:.2f} ms for data",
    )


class WholeStep:
    """A step with the batch that comes next, and how long it waited for that.

    Args:
        step: of one side.
        batches: without end.
        device: where the step is taken.
    """

    batch: Batch  # the latest

    def __init__(self, step: Step, batches: Iterable[Batch], device: str) -> None:
        self._step, self._batches, self._device = step, iter(batches), device
        self._waits: list[float] = []
        self.widths: list[int] = []  # of the answers, by step

    def __call__(self) -> None:
        """The next step."""
        began = perf_counter()
        batch = next(self._batches)
        self._waits.append(1000 * (perf_counter() - began))
        self.batch = Batch(*(tensor.to(self._device) for tensor in batch))
        self.widths.append(batch.targets.shape[1])
        self._step(self.batch)

    @property
    def waiting(self) -> float:
        """Mean milliseconds; the first batch, which nobody could make ahead, is not counted."""
        return mean(self._waits[1:])


def alone(make: Callable[[Recipe], Step], recipe: Recipe) -> WholeStep:
    """One side's step on fresh examples."""
    task = tasks.get(recipe.task)
    quick = "a1" if "a1" in task.labellers else None  # the shortest tours would take too long
    n, size = [int(recipe.n)], recipe.batch_size
    stream = ExampleStream(task, n, size, recipe.seed, labeller=quick)
    return WholeStep(make(recipe), stream, recipe.device)


def ours(recipe: Recipe) -> Step:
    """The library's step: products in the recipe's precision."""
    model = _model(recipe)
    found = GraphLosses(model) if recipe.device == "cuda" else partial(losses, model)
    precision = precision_of(recipe.precision, recipe.device)

    def loss(batch: Batch) -> Tensor:
        with torch.autocast(recipe.device, torch.bfloat16, enabled=precision == "bfloat16"):
            return found(batch)[0]

    step = _step(recipe, model, loss)

    def in_its_precision(batch: Batch) -> None:
        with matmul_precision(precision, recipe.device):
            step(batch)

    return in_its_precision


def naive(recipe: Recipe) -> Step:
    """The usual way's step, in float32."""
    model = NaivePtrNet.like(_model(recipe))
    return _step(recipe, model, model.loss)


def _model(recipe: Recipe) -> PointerModel:
    torch.manual_seed(recipe.seed)
    kind = tasks.get(recipe.task)
    model = models.build(recipe.model, kind.features, kind.num_specials, **recipe.network())
    return model.to(recipe.device)


def _step(recipe: Recipe, model: nn.Module, loss: Callable[[Batch], Tensor]) -> Step:
    update = optimizer(recipe, model.parameters())

    def step(batch: Batch) -> None:
        update.zero_grad()
        loss(batch).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        update.step()

    return step
