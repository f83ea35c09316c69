"""Speed of the kernel of additive scores, compared with plain PyTorch (the reference).

Both run forward and backward in float32. The roofline on a CPU is the time of the kernel's
divisions alone. Each pass has one division for each element, step and unit.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import numpy as np
import torch

from ptrnet.kernels.additive import additive_scores
from ptrnet.kernels.additive_formula import naive_scores
from ptrnet.kernels.numerics import reassociating_jit
from ptrnet.kernels.threads import run_slices
from ptrnet.training.hardware import device_of
from ptrnet.training.recipe import Recipe
from ptrnet.types import Floats
from ptrnet_lab.bench.harness import Row, Side, measure

HIDDEN_SIZES = (256, 512)  # by default
STEPS = 13  # decoder steps, M
REFERENCE_EVERY = 4  # time the slow reference in every 4th round only

# A thread has _ENTRIES float32 numbers (16 KB, within the L1 cache), and replaces each number x by
# 1 / (1 + x), _TIMES times.
_ENTRIES, _TIMES = 4096, 2000

Run = Callable[[], object]


def rows(
    n: int = 50,
    batch_size: int = 128,
    hidden_size: int | None = None,
    device: str = "cpu",
    repeats: int = 40,
    seed: int = 0,
) -> Iterator[Row]:
    """A row for each hidden size. Raises InputError if a model cannot have one of the sizes."""
    shape = {"n": str(n), "batch_size": batch_size, "device": device_of(device), "seed": seed}
    sizes = HIDDEN_SIZES if hidden_size is None else (hidden_size,)
    recipes = [Recipe.from_table({"task": "hull", "hidden_size": h, **shape}) for h in sizes]
    return chain.from_iterable(_rows_of(recipe, repeats) for recipe in recipes)


def _rows_of(recipe: Recipe, rounds: int) -> Iterator[Row]:
    n, units = recipe.data.n[0], recipe.network.hidden_size
    count = recipe.data.batch_size * STEPS * n
    divide, divisions = _divisions()
    setups = {
        "kernel": partial(_forward_and_backward, additive_scores, recipe),
        "reference": partial(_forward_and_backward, naive_scores, recipe),
    }
    sides = {
        "kernel": Side(setups["kernel"]()),
        "reference": Side(setups["reference"](), REFERENCE_EVERY),
    }
    if recipe.run.device == "cpu":
        sides["divisions"] = Side(divide)
    measured = measure(setups, sides, rounds, f"score, {units} units", recipe.run.device)
    roofline_ms = None
    if recipe.run.device == "cpu":
        roofline_ms = 2 * count * units / divisions * measured.median("divisions")
    yield measured.row(
        "kernel",
        "score",
        f"{units} units",
        count=count,
        unit="scores",
        facts={"n": n, "steps": STEPS, "batch_size": recipe.data.batch_size, "hidden_size": units},
        roofline_ms=roofline_ms,
        baseline=measured.baseline("reference", "reference", than="kernel"),
    )


def _forward_and_backward(scores: Callable[..., torch.Tensor], recipe: Recipe) -> Run:
    """Return a function that computes scores of random keys and queries, and their gradients."""
    torch.manual_seed(recipe.run.seed)
    batch, n, units = recipe.data.batch_size, recipe.data.n[0], recipe.network.hidden_size
    inputs = [
        torch.randn(shape, device=recipe.run.device, requires_grad=True)
        for shape in ((batch, n, units), (batch, STEPS, units), (units,))
    ]
    grad = torch.randn(batch, STEPS, n, device=recipe.run.device)
    return lambda: torch.autograd.grad(scores(*inputs), inputs, grad)


def _divisions() -> tuple[Run, float]:
    """Return a function that computes `1 / (1 + x)` on every core, and its number of divisions."""
    threads = torch.get_num_threads()
    rows = np.ones((threads, _ENTRIES), np.float32)

    def run() -> None:
        run_slices(lambda k, _first, _last: _divide(rows[k], _TIMES), range(threads + 1))

    return run, float(threads * _ENTRIES * _TIMES)


@reassociating_jit
def _divide(x: Floats, times: int) -> None:
    one = x.dtype.type(1)
    for _ in range(times):
        for i in range(x.shape[0]):
            x[i] = one / (one + x[i])
