"""A whole training step of a model, examples included, beside its matrix products alone.

AdamW and clipping, as `ptrnet train` has them; answers are padded to the longest of the batch. The
roofline is the time of the step's products, forward and backward. Of the Ptr-Net (encoder, decoder,
projections) it is at the rate of a large product, which its own kernels reach; beside it stands the
naive Ptr-Net, which takes the same batches from the same weights in float32. The products of any
other model are recorded, and taken one after the other in their own shapes; on a GPU, where that
would measure launches, they are counted, at the rate of a large product.
"""

from collections.abc import Iterator
from functools import partial
from statistics import mean
from typing import Any

import torch

from ptrnet import models, tasks
from ptrnet.bench import roofline
from ptrnet.bench.code_paths import code_paths
from ptrnet.bench.harness import Case, Result, measure
from ptrnet.bench.memory import Setup
from ptrnet.bench.row import Baseline, Row
from ptrnet.bench.timing import Side
from ptrnet.bench.training_step import (
    StepProducts,
    TrainingStep,
    naive_step,
    ptrnet_step,
    recorder,
)
from ptrnet.models.settings import EncoderSettings, ModelSettings, RemainingSettings
from ptrnet.settings import to_mapping
from ptrnet.training.hardware import device_of, matmul_precision, precision_of
from ptrnet.training.recipe import Recipe

SHIPPED = ("ptr-net", "transformer-ptr-net", "remaining-ptr-net")  # architectures, by default
SIZES: dict[str, tuple[int, ...]] = {"ptr-net": (256, 512)}  # units; of others their default
NAIVE_EVERY = 4  # rounds: the naive step is about ten times as slow
PTRNET, NAIVE, PRODUCT, PRODUCTS = "ptrnet", "naive", "product", "products"  # sides


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
    """A row for each model and size of it. Raises InputError for what cannot be trained.

    Args:
        task: None: hull; tsp of the model that is trained on cuts.
        model: an architecture; None: those of the shipped models.
        n: elements of an instance.
        batch_size: examples in a step.
        hidden_size: None: 256, and of the Ptr-Net 512, too. All else of a model is its default.
        precision: of the large products, as in a recipe.
        device: `cpu` or `cuda`.
        repeats: rounds behind each median.
        seed: of weights and examples.
    """
    cases = []
    for name in SHIPPED if model is None else (model,):
        case = PtrNetTraining if name == "ptr-net" else Training
        sizes = SIZES.get(name, (ModelSettings.hidden_size,))
        task_name = task or ("tsp" if is_trained_on_cuts(name) else "hull")
        for units in sizes if hidden_size is None else (hidden_size,):
            recipe = recipe_for(task_name, n, batch_size, units, precision, device, seed, name)
            cases.append(case(recipe, repeats))
    return measure("train", cases)


def is_trained_on_cuts(model: str) -> bool:
    """Whether a model is trained on cut answers: one that encodes what remains of an instance is.

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
    """The recipe of the measured training. Raises InputError for what cannot be trained.

    Elements are sorted where answers depend on indices that the model does not see.
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
    if not sees_order and tasks.get(task).depends_on_indices:
        table["order"] = "lexicographic"
    return Recipe.from_table(table)


class Training(Case):
    """The step of one size of a model."""

    def __init__(self, recipe: Recipe, rounds: int) -> None:
        self.recipe, self.rounds, self.device = recipe, rounds, recipe.device
        self.precision = precision_of(recipe.precision, recipe.device)
        self.title = f"{recipe.model}, {recipe.network.hidden_size} units"

    def setups(self) -> dict[str, Setup]:
        return {PTRNET: partial(TrainingStep.on_fresh_examples, ptrnet_step, self.recipe)}

    def sides(self) -> dict[str, Side]:
        self.step = TrainingStep.on_fresh_examples(ptrnet_step, self.recipe)
        return {PTRNET: Side(self.step, warmups=2), **self.roofline_sides()}

    def roofline_sides(self) -> dict[str, Side]:
        """The sides that are timed for the roofline."""
        if self.device == "cuda":
            return {PRODUCT: self.large_product()}
        return {PRODUCTS: Side(StepProducts(self.recipe, self.step), warmups=1)}

    def roofline_ms(self, result: Result) -> float:
        """The time of the step's products alone."""
        if self.device == "cpu":
            return result.median(PRODUCTS)
        products = recorder(self.recipe)(self.step.batch)
        operations = sum(product.operations * count for product, count in products.items())
        return operations / self.product_operations * result.median(PRODUCT)

    def large_product(self) -> Side:
        """One product, of `product_operations`, in the precision of the step."""
        dtype = torch.bfloat16 if self.precision == "bfloat16" else torch.float32
        product, self.product_operations = roofline.product(dtype, self.device)

        def product_in_precision() -> None:
            with matmul_precision(self.precision, self.device):
                product()

        return Side(product_in_precision)

    def baseline(self, result: Result) -> Baseline | None:
        """The same step written the usual way, where there is one."""
        return None

    def rows(self, result: Result) -> Iterator[Row]:
        recipe, time = self.recipe, result.spread(PTRNET)
        cuts = {"cuts": recipe.cuts} if recipe.cuts else {}
        settings = to_mapping(recipe.network)
        layers = {name: value for name, value in settings.items() if name.endswith("layers")}
        trained_on = f"{recipe.task.name}, cut; " if recipe.cuts else ""
        yield Row(
            measurement="train",
            name=f"{recipe.model}, {recipe.network.hidden_size} units, {self.precision}",
            time=time,
            count=recipe.batch_size,
            unit="examples",
            facts={
                "task": recipe.task.name,
                "model": recipe.model,
                "n": recipe.n[0],
                "batch_size": recipe.batch_size,
                **cuts,
                "hidden_size": recipe.network.hidden_size,
                **layers,
                "precision": self.precision,
                "step_ms": time.median,
                "waiting_ms": self.step.waiting_ms,
            },
            roofline_ms=self.roofline_ms(result),
            baseline=self.baseline(result),
            peak_mb=result.peak_mb[PTRNET],
            note=f"{trained_on}waits {self.step.waiting_ms:.2f} ms for data",
            paths=code_paths(recipe),
        )


class PtrNetTraining(Training):
    """The step of a Ptr-Net, beside that of the naive one."""

    def setups(self) -> dict[str, Setup]:
        naive = partial(TrainingStep.on_fresh_examples, naive_step, self.recipe)
        return {**super().setups(), NAIVE: naive}

    def sides(self) -> dict[str, Side]:
        naive = naive_step(self.recipe)
        naive_side = Side(lambda: naive(self.step.batch), NAIVE_EVERY, warmups=1)
        return {**super().sides(), NAIVE: naive_side}

    def roofline_sides(self) -> dict[str, Side]:
        return {PRODUCT: self.large_product()}

    def roofline_ms(self, result: Result) -> float:
        recipe, n = self.recipe, self.recipe.n[0]
        slots = n + recipe.task.num_specials
        steps = mean(self.step.answer_widths)
        units = recipe.network.hidden_size
        forward = roofline.operations(recipe.batch_size, units, n, slots, steps)
        return 3 * forward / self.product_operations * result.median(PRODUCT)

    def baseline(self, result: Result) -> Baseline:
        return Baseline(
            "naive float32",
            result.median(NAIVE),
            result.ratio(NAIVE, PTRNET),
            result.peak_mb[NAIVE],
        )
