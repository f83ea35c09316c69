"""A whole training step of a model, examples included, compared with its matrix products alone.

AdamW and clipping are those of `ptrnet train`; answers are padded to the longest of the batch.

The roofline is the time of the step's products, forward and backward. For the Ptr-Net (encoder,
decoder, projections) we count them, at the rate of a large product, which its own kernels reach.
Its baseline is the naive Ptr-Net, which takes the same batches from the same weights in float32.
The products of any other model are recorded, and computed one after the other in their own shapes.
On a GPU that would measure launches, so there we count them, too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import mean
from time import perf_counter
from typing import Any

import torch
from numba.core import config
from numba.core.codegen import get_host_cpu_features
from torch import Tensor, nn

from ptrnet import models, tasks
from ptrnet.bench import roofline
from ptrnet.bench.harness import Baseline, Case, Result, Row, Setup, Side, measure
from ptrnet.bench.naive import NaivePtrNet
from ptrnet.bench.roofline import Product, ProductsAlone, record_products
from ptrnet.data.streams import BatchStream, CutStream, ExampleStream
from ptrnet.kernels import packed
from ptrnet.kernels.lstm import has_onednn
from ptrnet.kernels.lstm.cpu import MAX_FUSED, PackedProducts, products_class
from ptrnet.models.base import PointerModel
from ptrnet.models.settings import (
    EncoderSettings,
    ModelSettings,
    RecurrentSettings,
    RemainingSettings,
)
from ptrnet.settings import to_mapping
from ptrnet.training.graphs import GraphLosses
from ptrnet.training.hardware import device_of, matmul_precision, precision_of
from ptrnet.training.losses import cut_losses, losses
from ptrnet.training.optimizers import optimizer
from ptrnet.training.recipe import Recipe
from ptrnet.types import Batch, CutBatch

SHIPPED = ("ptr-net", "transformer-ptr-net", "remaining-ptr-net")  # architectures, by default
SIZES: dict[str, tuple[int, ...]] = {"ptr-net": (256, 512)}  # units; other models: their default
NAIVE_EVERY = 4  # rounds, because the naive step is about ten times as slow
PTRNET, NAIVE, PRODUCT, PRODUCTS = "ptrnet", "naive", "product", "products"  # sides

TrainingBatch = Batch | CutBatch
Step = Callable[[Any], None]  # takes the kind of training batch that the recipe has


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
    """A row for each model and each of its sizes.

    Args:
        task: None: hull, or tsp if the model is trained on cuts.
        model: an architecture; None: those of the shipped models.
        n: elements of an instance.
        batch_size: examples in a step.
        hidden_size: None: 256, for the Ptr-Net also 512. Other settings keep their defaults.
        precision: of the large products, as in a recipe.
        device: `cpu` or `cuda`.
        repeats: rounds behind each median.
        seed: of weights and examples.

    Raises:
        InputError: the recipe cannot be trained.
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
    """Whether a model is trained on cut answers, as models that encode what remains are.

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
    """The recipe of the measured training. Raises InputError if it cannot be trained.

    Elements are sorted if answers depend on indices that the model does not see.
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
    """The training step of a model of one size."""

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
        """A large product in the precision of the step; sets `product_operations`."""
        dtype = torch.bfloat16 if self.precision == "bfloat16" else torch.float32
        product, self.product_operations = roofline.product(dtype, self.device)

        def product_in_precision() -> None:
            with matmul_precision(self.precision, self.device):
                product()

        return Side(product_in_precision)

    def baseline(self, result: Result) -> Baseline | None:
        """Baseline implementation of the step, if available."""
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
    """The step of a Ptr-Net, compared with that of the naive one."""

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
        forward = roofline.operations(
            recipe.batch_size, recipe.network.hidden_size, n, slots, steps
        )
        return 3 * forward / self.product_operations * result.median(PRODUCT)

    def baseline(self, result: Result) -> Baseline:
        return Baseline(
            "naive float32",
            result.median(NAIVE),
            result.ratio(NAIVE, PTRNET),
            result.peak_mb[NAIVE],
        )


# ---- The step


class TrainingStep:
    """A training step on the next batch of a stream: losses, clipping, optimizer.

    It records how long it waits for the batch.

    Args:
        step: trains on a batch that is on the device.
        batches: an infinite stream.
        device: where the step runs.
    """

    batch: TrainingBatch  # the latest one

    def __init__(self, step: Step, batches: Iterable[TrainingBatch], device: str) -> None:
        self._step, self._batches, self._device = step, iter(batches), device
        self._waits: list[float] = []  # milliseconds, by step
        self.answer_widths: list[int] = []  # tokens, padding included, by step

    @classmethod
    def on_fresh_examples(
        cls, make_step: Callable[[Recipe], Step], recipe: Recipe
    ) -> "TrainingStep":
        """A step on examples that are drawn and labelled as it runs."""
        task = recipe.task
        labeller = "a1" if "a1" in task.labellers else None  # exact tours would take too long
        stream: BatchStream[Any] = ExampleStream(
            task, recipe.n, recipe.batch_size, recipe.seed, labeller=labeller
        )
        if recipe.cuts:
            stream = CutStream(stream, task, recipe.cuts, recipe.seed)
        return cls(make_step(recipe), stream, recipe.device)

    def __call__(self) -> None:
        """Take the next step."""
        start = perf_counter()
        batch = next(self._batches)
        self._waits.append(1000 * (perf_counter() - start))
        values = (x.to(self._device) if isinstance(x, Tensor) else x for x in batch)
        self.batch = type(batch)(*values)  # type: ignore[arg-type]
        self.answer_widths.append(batch.targets.shape[1])
        self._step(self.batch)

    @property
    def waiting_ms(self) -> float:
        """The mean wait for a batch, without the first, which cannot be made ahead."""
        return mean(self._waits[1:])


class StepProducts:
    """Computes the matrix products of the latest step alone, for the same batch.

    The first call after a step also records them, so it must not be timed.
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
    """A function that counts the products of the library's step on a batch."""
    model = _model(recipe)
    loss = _loss(recipe, partial(cut_losses if recipe.cuts else losses, model))
    parameters = list(model.parameters())

    def record(batch: TrainingBatch) -> Counter[Product]:
        return record_products(
            lambda: torch.autograd.grad(loss(batch), parameters, allow_unused=True)
        )

    return record


def ptrnet_step(recipe: Recipe) -> Step:
    """The library's step, with products in the recipe's precision."""
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
    """The step of the naive Ptr-Net, in float32."""
    model = NaivePtrNet.from_ptr_net(_model(recipe))
    return _step(recipe, model, model.loss)


def _model(recipe: Recipe) -> PointerModel:
    torch.manual_seed(recipe.seed)
    size = recipe.task.num_features, recipe.task.num_specials
    return models.kind(recipe.model)(*size, recipe.network).to(recipe.device)


def _loss(
    recipe: Recipe, model_losses: Callable[[Any], tuple[Tensor, Tensor]]
) -> Callable[[Any], Tensor]:
    """The loss of a batch, with large products in bfloat16 if the recipe says so."""
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


# ---- Which code it uses


def code_paths(recipe: Recipe) -> dict[str, str]:
    """Which code each part of the recipe's training step uses on this machine, and why.

    For a model of a plugin we only know about the large products.
    """
    precision = precision_of(recipe.precision, recipe.device)
    paths = {"large products": f"PyTorch's, in {precision}"}
    settings = recipe.network
    if isinstance(settings, EncoderSettings):
        paths["attention"] = (
            "two products and a softmax in float32, as the backward pass of PyTorch's fused "
            "attention takes longer in bfloat16 and has no second derivative"
        )
    if isinstance(settings, RecurrentSettings):
        on_gpu = recipe.device == "cuda"
        recurrent = _on_gpu if on_gpu else _on_cpu
        paths |= recurrent(recipe, precision, getattr(settings, "score", ""), settings.cell)
    return paths


def _on_gpu(recipe: Recipe, precision: str, score: str, cell: str) -> dict[str, str]:
    paths = {"layers": "cuDNN's, outside autocast, which would round to float16"}
    if score == "additive":
        from ptrnet.kernels.additive import kernel_on

        is_triton = kernel_on(torch.device("cuda")).__module__.endswith("gpu")
        paths["scores"] = "Triton's kernel" if is_triton else "PyTorch's: Triton does not run here"
    return paths


def _on_cpu(recipe: Recipe, precision: str, score: str, cell: str) -> dict[str, str]:
    paths = {}
    if cell == "lstm":
        dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        features = recipe.task.num_features
        sizes = recipe.network.hidden_size, 0 if features <= MAX_FUSED else features
        if precision == "float32" and has_onednn():
            paths["layers"] = "PyTorch's nn.LSTM on oneDNN, the faster in float32 with gradients"
        else:
            paths["recurrent products"] = _products(*sizes, dtype)
            paths["gates"] = _compiled()
    if score == "additive":
        paths["scores"] = _compiled()
    return paths


def _products(units: int, features: int, dtype: torch.dtype) -> str:
    instruction = "avx512_bf16" if dtype == torch.bfloat16 else "avx512f"
    if products_class(units, features, dtype) is PackedProducts:
        return f"compiled, weights packed once a step, as the processor has {instruction}"
    if packed.is_restricted():
        return "PyTorch's, as numba was told to compile for another processor, or not at all"
    if packed.can_multiply(dtype):
        return "PyTorch's, as the units do not fill whole panels"
    if dtype == torch.bfloat16 and "+amx-bf16" in get_host_cpu_features().split(","):
        return "PyTorch's, as the processor has AMX tiles"
    return f"PyTorch's, as the processor has no {instruction}"


def _compiled() -> str:
    """Describe the code that numba compiles on this machine."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return "interpreted, as numba was told not to compile"
    features = (config.CPU_FEATURES or get_host_cpu_features()).split(",")  # type: ignore[attr-defined]
    widths = {"+avx512f": "512", "+avx2": "256", "+neon": "128"}
    width = next((bits for feature, bits in widths.items() if feature in features), None)
    return f"compiled for this processor, {f'vectors of {width} bits' if width else 'scalar'}"
