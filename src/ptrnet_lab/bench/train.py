"""Speed of a training step, including its wait for examples, compared with its matrix products.

The optimizer and gradient clipping are the same as in `ptrnet train`. Answers are padded to the
longest answer of the batch.

The roofline is the time of the step's products, forward and backward, at the rate of a large
product. The baseline of the Ptr-Net is the naive Ptr-Net. The naive Ptr-Net begins with the same
weights, trains on the same batches, and computes in float32.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from statistics import mean
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from ptrnet import models, tasks
from ptrnet.data.batches import Batch
from ptrnet.data.streams import FreshStream
from ptrnet.models.base import PointerModel
from ptrnet.models.settings import EncoderSettings, ModelSettings, RemainingSettings
from ptrnet.settings import to_mapping
from ptrnet.training.cuda_graphs import GraphLosses
from ptrnet.training.hardware import device_of, has_run_on_gpu, matmul_precision, precision_of
from ptrnet.training.losses import cut_losses, losses
from ptrnet.training.optimizers import optimizer
from ptrnet.training.recipe import Recipe
from ptrnet_lab.bench import roofline
from ptrnet_lab.bench.harness import Row, Side, measure
from ptrnet_lab.bench.naive import NaivePtrNet

SHIPPED = ("ptr-net", "transformer-ptr-net", "remaining-ptr-net")  # measured by default
SIZES: dict[str, tuple[int, ...]] = {"ptr-net": (256, 512)}  # hidden units; 256 for other models
NAIVE_EVERY = 4  # time the naive step, which is ten times as slow, every 4th round
COUNTED = 8  # examples whose products are counted

Step = Callable[[Batch], None]


def rows(
    task: str | None = None,
    model: str | None = None,
    n: int = 50,
    batch_size: int = 128,
    hidden_size: int | None = None,
    precision: str = "auto",
    device: str = "cpu",
    repeats: int = 24,
    seed: int = 0,
) -> Iterator[Row]:
    """A row for each model and each of its hidden sizes.

    Args:
        task: the task. None: hull, or tsp for a model that `is_trained_on_cuts`.
        model: an architecture. None: each architecture in SHIPPED.
        n: elements of an instance.
        batch_size: examples in a step.
        hidden_size: hidden units. None: 256, and for the Ptr-Net also 512. Other settings of the
            model keep their defaults.
        precision: the precision of large matrix products, as in a recipe.
        device: `cpu` or `cuda`.
        repeats: number of rounds. Each time is the median over the rounds.
        seed: the seed of the weights and the examples.

    Raises:
        InputError: the recipe cannot be trained.
    """
    recipes = []
    for name in SHIPPED if model is None else (model,):
        sizes = SIZES.get(name, (ModelSettings.hidden_size,))
        task_name = task or ("tsp" if is_trained_on_cuts(name) else "hull")
        for units in sizes if hidden_size is None else (hidden_size,):
            recipes.append(
                recipe_for(task_name, n, batch_size, units, precision, device, seed, name)
            )
    return chain.from_iterable(_rows_of(recipe, repeats) for recipe in recipes)


def is_trained_on_cuts(model: str) -> bool:
    """Whether this benchmark trains a model on cut answers, like `remaining-ptr-net`.

    Raises:
        InputError: there is no such model.
    """
    return issubclass(models.kind(model).Settings, RemainingSettings)


def recipe_for(
    task: str,
    n: int,
    batch_size: int,
    hidden_size: int,
    precision: str,
    device: str,
    seed: int,
    model: str = "ptr-net",
) -> Recipe:
    """The recipe of the measured training. Raises InputError if the recipe cannot be trained.

    If answers depend on indices that the model does not see, elements are sorted.
    """
    table: dict[str, Any] = {
        "task": task,
        "model": model,
        "n": str(n),
        "batch_size": batch_size,
        "cuts": int(is_trained_on_cuts(model)),
        "hidden_size": hidden_size,
        "precision": precision,
        "device": device_of(device),
        "seed": seed,
    }
    sees_order = not issubclass(models.kind(model).Settings, EncoderSettings)
    if not sees_order and tasks.get(task).facts.depends_on_indices:
        table["order"] = "lexicographic"
    return Recipe.from_table(table)


def _rows_of(recipe: Recipe, rounds: int) -> Iterator[Row]:
    """Measure the training step of a recipe."""
    setups = {"ptrnet": partial(TrainingStep.on_fresh_examples, ptrnet_step, recipe)}
    has_naive, units = recipe.model == "ptr-net", recipe.network.hidden_size
    if has_naive:
        setups["naive"] = partial(TrainingStep.on_fresh_examples, naive_step, recipe)
    precision = precision_of(recipe, recipe.run.device)
    step = setups["ptrnet"]()
    product, product_operations = _large_product(precision, recipe.run.device)
    sides = {"ptrnet": Side(step, warmups=2), "product": Side(product)}
    if has_naive:
        naive = naive_step(recipe)
        sides["naive"] = Side(lambda: naive(step.batch), NAIVE_EVERY, warmups=1)
    title = f"train, {recipe.model}, {units} units"
    measured = measure(setups, sides, rounds, title, recipe.run.device)
    operations = _operations(recipe, step.batch) / product_operations
    settings = to_mapping(recipe.network)
    layers = {name: value for name, value in settings.items() if name.endswith("layers")}
    trained_on = f"{recipe.task.name}, cut; " if recipe.data.cuts else ""
    yield measured.row(
        "ptrnet",
        "train",
        f"{recipe.model}, {units} units, {precision}",
        count=recipe.data.batch_size,
        unit="examples",
        facts={
            "task": recipe.task.name,
            "model": recipe.model,
            "n": recipe.data.n[0],
            "batch_size": recipe.data.batch_size,
            **({"cuts": recipe.data.cuts} if recipe.data.cuts else {}),
            "hidden_size": units,
            **layers,
            "precision": precision,
            "step_ms": measured.median("ptrnet"),
            "waiting_ms": step.waiting_ms,
        },
        roofline_ms=operations * measured.median("product"),
        baseline=measured.baseline("naive float32", "naive", "ptrnet") if has_naive else None,
        note=f"{trained_on}waits {step.waiting_ms:.2f} ms for data",
    )


def _large_product(precision: str, device: str) -> tuple[Callable[[], object], float]:
    """`roofline.product` in the precision of a step."""
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    product, operations = roofline.product(dtype, device)

    def product_in_precision() -> None:
        with matmul_precision(precision, device):
            product()

    return product_in_precision, operations


def _operations(recipe: Recipe, batch: Batch) -> float:
    """Estimate the operations of a step from a few examples.

    Counting uses plain formulas, which would take too much memory for all examples.
    """
    rows = len(batch.inputs)
    some = batch.map(lambda tensor: tensor[:COUNTED])
    model = _model(recipe)
    loss = _loss(recipe, partial(cut_losses if recipe.data.cuts else losses, model))
    parameters = list(model.parameters())

    def step() -> None:
        torch.autograd.grad(loss(some), parameters, allow_unused=True)

    return roofline.count_operations(step) * rows / len(some.inputs)


# ---- The step


class TrainingStep:
    """A training step on the next batch of a stream: losses, clipping, optimizer.

    The step records how long it waits for each batch. `step` trains on a batch that is on the
    device. The stream of batches is infinite.
    """

    batch: Batch  # the batch of the last step

    def __init__(self, step: Step, batches: Iterable[Batch], device: str) -> None:
        self._step, self._batches, self._device = step, iter(batches), device
        self._waits: list[float] = []  # milliseconds, by step

    @classmethod
    def on_fresh_examples(
        cls, make_step: Callable[[Recipe], Step], recipe: Recipe
    ) -> "TrainingStep":
        """A step on examples that are drawn and labelled while steps run."""
        task = recipe.task
        labeller = "a1" if task.name == "tsp" else None  # exact tours would take too long
        stream = FreshStream(
            task,
            recipe.data.n,
            recipe.data.batch_size,
            recipe.run.seed,
            labeller=labeller,
            num_cuts=recipe.data.cuts,
        )
        return cls(make_step(recipe), stream, recipe.run.device)

    def __call__(self) -> None:
        """Take the next step."""
        start = perf_counter()
        batch = next(self._batches)
        self._waits.append(1000 * (perf_counter() - start))
        self.batch = batch.map(lambda tensor: tensor.to(self._device))
        self._step(self.batch)

    @property
    def waiting_ms(self) -> float:
        """The mean wait for a batch, except the first batch, which cannot be prepared ahead."""
        return mean(self._waits[1:])


def ptrnet_step(recipe: Recipe) -> Step:
    """The library's step, with products in the recipe's precision."""
    model = _model(recipe)
    if recipe.data.cuts:
        step = _step(recipe, model, _loss(recipe, partial(cut_losses, model)))
    else:
        as_graph = recipe.run.device == "cuda" and has_run_on_gpu(recipe)
        model_losses = GraphLosses(model) if as_graph else partial(losses, model)
        step = _step(recipe, model, _loss(recipe, model_losses))
    precision = precision_of(recipe, recipe.run.device)

    def step_in_precision(batch: Batch) -> None:
        with matmul_precision(precision, recipe.run.device):
            step(batch)

    return step_in_precision


def naive_step(recipe: Recipe) -> Step:
    """The step of the naive Ptr-Net, in float32."""
    model = NaivePtrNet.from_ptr_net(_model(recipe))
    return _step(recipe, model, model.loss)


def _model(recipe: Recipe) -> PointerModel:
    torch.manual_seed(recipe.run.seed)
    size = recipe.task.facts.num_features, recipe.task.facts.num_specials
    return models.kind(recipe.model)(*size, recipe.network).to(recipe.run.device)


def _loss(
    recipe: Recipe, model_losses: Callable[[Any], tuple[Tensor, Tensor]]
) -> Callable[[Any], Tensor]:
    """Return a function that computes a batch's loss, in the precision of the recipe."""
    precision = precision_of(recipe, recipe.run.device)

    def loss(batch: Batch) -> Tensor:
        with torch.autocast(recipe.run.device, torch.bfloat16, enabled=precision == "bfloat16"):
            return model_losses(batch)[0].mean()

    return loss


def _step(recipe: Recipe, model: nn.Module, loss: Callable[[Any], Tensor]) -> Step:
    optimizer_ = optimizer(recipe, model)

    def step(batch: Batch) -> None:
        optimizer_.zero_grad()
        loss(batch).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.optimiser.clip)
        optimizer_.step()

    return step
