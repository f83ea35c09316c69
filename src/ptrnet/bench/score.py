"""The kernel of the additive scores beside its reference, forward and backward, in float32.

The roofline on a CPU is the time of the kernel's divisions alone: one for each element, step and
unit, forward and again backward.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from ptrnet.bench import roofline
from ptrnet.bench.memory import Work, peaks
from ptrnet.bench.row import Other, Row
from ptrnet.bench.timing import Side, interleaved, ratio, spread
from ptrnet.kernels import additive_scores
from ptrnet.kernels.additive.reference import additive_scores as plain
from ptrnet.training.hardware import device_of
from ptrnet.training.recipe import Recipe

SIZES = (256, 512)  # units, where none are asked for
STEPS = 13  # of the decoder, M
EVERY = 4  # rounds of which the reference, many times as slow, runs in one

Run = Callable[[], object]


def rows(
    n: int = 50,
    batch_size: int = 128,
    hidden_size: int | None = None,
    device: str = "cpu",
    repeats: int = 40,
    seed: int = 0,
) -> Iterator[Row]:
    """A row for each number of units. Raises InputError for what no model has."""
    shape = {"n": str(n), "batch_size": batch_size, "device": device_of(device), "seed": seed}
    wanted = SIZES if hidden_size is None else (hidden_size,)
    recipes = [Recipe.from_table({"task": "hull", "hidden_size": h, **shape}) for h in wanted]
    return _measured(recipes, repeats)


def _measured(wanted: list[Recipe], repeats: int) -> Iterator[Row]:
    works: dict[str, Work] = {
        f"{make.__name__} {asked.hidden_size}": partial(make, asked)
        for asked in wanted
        for make in (kernel, reference)
    }
    held = peaks(works, "score")
    for asked in wanted:
        yield _row(asked, repeats, held)


def _row(asked: Recipe, repeats: int, held: dict[str, float]) -> Row:
    units, n, batch = asked.hidden_size, int(asked.n), asked.batch_size
    sides = {"kernel": Side(kernel(asked)), "reference": Side(reference(asked), EVERY)}
    divide, its_divisions = roofline.divisions()
    if asked.device == "cpu":
        sides["divisions"] = Side(divide)
    times = interleaved(sides, repeats, f"score, {units} units", asked.device)
    time = {name: spread(found.values()) for name, found in times.items()}
    entries = batch * STEPS * n * units
    floor = None
    if "divisions" in time:
        floor = 2 * entries / its_divisions * time["divisions"].median
    return Row(
        what="score",
        name=f"{units} units",
        time=time["kernel"],
        count=batch * STEPS * n,
        unit="scores",
        facts={"n": n, "steps": STEPS, "batch_size": batch, "hidden_size": units},
        roofline_ms=floor,
        other=Other(
            "reference",
            time["reference"].median,
            ratio(times["reference"], times["kernel"]),
            held[f"reference {units}"],
        ),
        peak_mb=held[f"kernel {units}"],
    )


def kernel(asked: Recipe) -> Run:
    """What models use."""
    return _both_ways(additive_scores, asked)


def reference(asked: Recipe) -> Run:
    """The formula in plain PyTorch."""
    return _both_ways(plain, asked)


def _both_ways(scores: Callable[..., torch.Tensor], asked: Recipe) -> Run:
    """Forward and backward of random keys and queries."""
    torch.manual_seed(asked.seed)
    batch, n, units = asked.batch_size, int(asked.n), asked.hidden_size
    given = [
        torch.randn(shape, device=asked.device, requires_grad=True)
        for shape in ((batch, n, units), (batch, STEPS, units), (units,))
    ]
    grad = torch.randn(batch, STEPS, n, device=asked.device)
    return lambda: torch.autograd.grad(scores(*given), given, grad)
