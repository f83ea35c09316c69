"""Answers of the shipped model: greedy decoding, beam search, and a step of the decoder.

Without constraint and in float32, like the naive Ptr-Net of the same weights, which takes the
same steps. The roofline is the time of the products alone.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet import tasks, weights
from ptrnet.bench import roofline
from ptrnet.bench.memory import Work, peaks
from ptrnet.bench.naive import NaivePtrNet
from ptrnet.bench.row import Other, Row
from ptrnet.bench.timing import Side, interleaved, ratio, spread
from ptrnet.data import checks
from ptrnet.data.sizes import parse_sizes
from ptrnet.data.symmetries import reordered
from ptrnet.decoding import Beam, Decoder, Greedy
from ptrnet.errors import InputError
from ptrnet.solver import Solver
from ptrnet.training.hardware import device_of
from ptrnet.training.recipe_checks import LARGEST_BATCH

FARTHER = 10  # times as many elements as the largest of the model's training
BEAM = 8
EVERY = 4  # rounds of which the slow sides run in one


class Asked(NamedTuple):
    """What is answered, and where."""

    task: str
    n: int
    batch_size: int
    device: str
    seed: int


def rows(
    task: str = "hull",
    n: int | None = None,
    batch_size: int = 128,
    device: str = "cpu",
    repeats: int = 8,
    seed: int = 0,
) -> Iterator[Row]:
    """Rows for each size of the instances. Raises InputError for what cannot be answered."""
    kind, device = tasks.get(task), device_of(device)
    most = parse_sizes(weights.summary(task)["n"])[-1]
    sizes = [most, FARTHER * most] if n is None else parse_sizes(str(n))
    checks.sizes(sizes, kind)
    if batch_size * sizes[-1] > LARGEST_BATCH:
        raise InputError(f"batch size: {batch_size} instances of {sizes[-1]} are too many elements")
    return _measured([Asked(task, size, batch_size, device, seed) for size in sizes], repeats)


Run = Callable[[], Tensor]  # to the tokens (B, K, M)
Make = Callable[[Asked], Run]


def _measured(wanted: list[Asked], repeats: int) -> Iterator[Row]:
    """Beam search and the naive side are measured at the first size only."""
    makes: dict[Asked, list[Make]] = {asked: [greedy] for asked in wanted}
    makes[wanted[0]] += [beam, naive]
    works: dict[str, Work] = {
        f"{make.__name__} {asked.n}": partial(make, asked)
        for asked, made in makes.items()
        for make in made
    }
    held = peaks(works, "solve")
    for asked, made in makes.items():
        yield from _rows(asked, made, repeats, held)


def _rows(asked: Asked, makes: list[Make], repeats: int, held: dict[str, float]) -> Iterator[Row]:
    product, its_operations = roofline.product(torch.float32, asked.device)
    runs = {make.__name__: make(asked) for make in makes}
    sides = {
        "encoder": Side(encoder(asked)),
        "product": Side(product),
        **{
            name: Side(run, 1 if name == "greedy" else EVERY, before=1)
            for name, run in runs.items()
        },
    }
    times = interleaved(sides, repeats, f"solve, n={asked.n}", asked.device)
    time = {name: spread(found.values()) for name, found in times.items()}
    solver = _solver(asked)
    units, slots = solver.model.settings()["hidden_size"], asked.n + solver.task.num_specials
    for name, size in (("greedy", 1), ("beam", BEAM)):
        if name not in runs:
            continue
        steps = runs[name]().shape[2]
        step_ms = (time[name].median - time["encoder"].median) / steps
        more = ratio(times[name], times["greedy"])
        extended = 1 + (steps - 1) * size  # prefixes of an instance, over all steps
        work = roofline.operations(asked.batch_size, units, asked.n, slots, extended)
        beside = None
        if name == "greedy" and "naive" in runs:
            faster = ratio(times["naive"], times["greedy"])
            beside = Other("naive", time["naive"].median, faster, held[f"naive {asked.n}"])
        note = f"{steps} steps of {step_ms:.3g} ms"
        yield Row(
            what="solve",
            name=f"{name}, n={asked.n}" if size == 1 else f"{name} of {size}, n={asked.n}",
            time=time[name],
            count=asked.batch_size,
            unit="instances",
            facts={
                "task": asked.task,
                "n": asked.n,
                "batch_size": asked.batch_size,
                "hidden_size": units,
                "beam_size": size,
                "decoder_steps": steps,
                "decoder_step_ms": step_ms,
                "times_greedy": more,
            },
            roofline_ms=work / its_operations * time["product"].median,
            other=beside,
            peak_mb=held[f"{name} {asked.n}"],
            note=note if size == 1 else f"{note}; {more:.1f} times greedy",
        )


def greedy(asked: Asked) -> Run:
    """The library's search, a beam of one."""
    return _search(asked, Greedy())


def beam(asked: Asked) -> Run:
    """The library's search, wider."""
    return _search(asked, Beam(BEAM))


def naive(asked: Asked) -> Run:
    """The usual way's greedy decoding."""
    solver, (inputs, _, longest) = _solver(asked), _instances(asked)
    model = NaivePtrNet.like(solver.model)
    return lambda: model.greedy(inputs, int(longest[0]))[:, None]


def encoder(asked: Asked) -> Callable[[], object]:
    """What comes before the first step."""
    solver, (inputs, lengths, _) = _solver(asked), _instances(asked)

    def run() -> object:
        with torch.no_grad():
            return solver.model.encode(inputs, lengths)

    return run


def _search(asked: Asked, decoder: Decoder) -> Run:
    solver, given = _solver(asked), _instances(asked)
    return lambda: decoder.decode(solver.model, *given).tokens


def _solver(asked: Asked) -> Solver:
    solver = weights.load(asked.task)
    solver.model.to(asked.device)
    return solver


def _instances(asked: Asked) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs as the shipped model reads them, their lengths, and the most tokens of answers."""
    task = _solver(asked).task
    drawn = task.sample(np.random.default_rng(asked.seed), asked.batch_size, asked.n)
    inputs = torch.from_numpy(reordered(drawn, task.arrangement(drawn)).astype(np.float32))
    lengths = torch.full((asked.batch_size,), asked.n)
    longest = torch.full((asked.batch_size,), task.longest(asked.n))
    return inputs.to(asked.device), lengths.to(asked.device), longest.to(asked.device)
