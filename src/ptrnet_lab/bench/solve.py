"""Speed of the shipped Ptr-Net: greedy decoding, beam search, and a step of the decoder.

The baseline is the naive Ptr-Net, which has the same weights and takes the same steps. Decoding is
unconstrained and in float32, because the baseline supports nothing else. The roofline is the time
of the matrix products alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from ptrnet import tasks, weights
from ptrnet.data import checks
from ptrnet.data.batches import permute_elements
from ptrnet.decoding import Beam, Decoder, Greedy
from ptrnet.errors import InputError
from ptrnet.geometry import model_order
from ptrnet.solver import Solver
from ptrnet.training.hardware import device_of
from ptrnet.training.recipe import LARGEST_BATCH
from ptrnet.types import Sizes
from ptrnet_lab.bench import roofline
from ptrnet_lab.bench.harness import Row, Side, measure
from ptrnet_lab.bench.naive import NaivePtrNet

TIMES_TRAINED = 10  # the second size, as a multiple of the largest trained size
BEAM_SIZE = 8
SLOW_EVERY = 4  # time beam search and the naive Ptr-Net in every 4th round only
COUNTED = 8  # instances whose matrix products are counted

Run = Callable[[], Tensor]  # returns tokens (B, K, M)


def rows(
    task: str = "hull",
    n: int | None = None,
    batch_size: int = 128,
    device: str = "cpu",
    repeats: int = 8,
    seed: int = 0,
) -> Iterator[Row]:
    """Rows for each size of instances. Raises InputError if a size or a batch is not possible."""
    kind, device = tasks.get(task), device_of(device)
    model = f"{task}-ptr-net" if f"{task}-ptr-net" in weights.names() else task
    trained = Sizes(weights.summary(model)["n"])[-1]
    sizes = [trained, TIMES_TRAINED * trained] if n is None else Sizes(n)
    checks.check_sizes(sizes, kind)
    check_batch(batch_size, sizes[-1])
    first, *others = [Questions(model, size, batch_size, device, seed) for size in sizes]
    return chain(
        _rows_of(first, repeats, with_others=True),
        *(_rows_of(questions, repeats, with_others=False) for questions in others),
    )


def check_batch(batch_size: int, n: int) -> None:
    """Raise InputError if a batch would take too much memory."""
    if batch_size * n > LARGEST_BATCH:
        raise InputError(f"batch size: {batch_size} instances of {n} are too many elements")


@dataclass(frozen=True)
class Questions:
    """A batch of random instances for a shipped model."""

    model: str
    n: int
    batch_size: int
    device: str = "cpu"
    seed: int = 0

    def solver(self) -> Solver:
        """The shipped model, on the device."""
        solver = weights.load(self.model)
        solver.model.to(self.device)
        return solver

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs `(B, N, d)` in the model's order, lengths and maximal answer lengths `(B,)`."""
        task = self.solver().task
        drawn = task.sample(np.random.default_rng(self.seed), self.batch_size, self.n)
        read = task.normalize(drawn)
        read = permute_elements(read, model_order(read, task.order))
        inputs = torch.from_numpy(read.astype(np.float32))
        lengths = torch.full((self.batch_size,), self.n)
        max_tokens = torch.full((self.batch_size,), task.max_length(self.n))
        return inputs.to(self.device), lengths.to(self.device), max_tokens.to(self.device)


def _rows_of(questions: Questions, rounds: int, with_others: bool) -> Iterator[Row]:
    """Measure greedy decoding of a batch. `with_others` adds beam search and the baseline."""
    decoders = {"greedy": Greedy(), **({"beam": Beam(BEAM_SIZE)} if with_others else {})}
    setups = {name: partial(search, questions, decoder) for name, decoder in decoders.items()}
    if with_others:
        setups["naive"] = partial(naive, questions)
    solver, title = questions.solver(), f"n={questions.n}"
    product, product_operations = roofline.product(torch.float32, questions.device)
    runs = {name: setup() for name, setup in setups.items()}
    sides = {"encoder": Side(encoder(questions)), "product": Side(product)}
    for name, run in runs.items():
        sides[name] = Side(run, 1 if name == "greedy" else SLOW_EVERY, warmups=1)
    measured = measure(setups, sides, rounds, f"solve, {title}", questions.device)
    for side, decoder in decoders.items():
        is_greedy, steps = side == "greedy", runs[side]().shape[2]
        step_ms = (measured.median(side) - measured.median("encoder")) / steps
        times_greedy = measured.baseline(side, side, than="greedy").ratio
        note = f"{steps} steps of {step_ms:.3g} ms"
        operations = _operations(questions, decoder) / product_operations
        has_naive = with_others and is_greedy
        yield measured.row(
            side,
            "solve",
            f"{side if is_greedy else f'beam of {decoder.size}'}, {title}",
            count=questions.batch_size,
            unit="instances",
            facts={
                "task": solver.task.name,
                "n": questions.n,
                "batch_size": questions.batch_size,
                "hidden_size": solver.model.settings()["hidden_size"],
                "beam_size": decoder.size,
                "decoder_steps": steps,
                "decoder_step_ms": step_ms,
                "times_greedy": times_greedy,
            },
            roofline_ms=operations * measured.median("product"),
            baseline=measured.baseline("naive", "naive", than=side) if has_naive else None,
            note=note if is_greedy else f"{note}; {times_greedy:.1f} times greedy",
        )


def _operations(questions: Questions, decoder: Decoder) -> float:
    """Estimate the operations of a search from a few instances.

    Counting uses plain formulas, which would take too much memory for all instances.
    """
    some = replace(questions, batch_size=min(COUNTED, questions.batch_size))
    counted = roofline.count_operations(search(some, decoder))
    return counted * questions.batch_size / some.batch_size


def search(questions: Questions, decoder: Decoder) -> Run:
    """Return a function that decodes with the library."""
    solver, tensors = questions.solver(), questions.tensors()
    return lambda: decoder.decode(solver.model, *tensors).tokens


def naive(questions: Questions) -> Run:
    """Return a function that decodes greedily with the naive Ptr-Net."""
    solver, (inputs, _, max_tokens) = questions.solver(), questions.tensors()
    model = NaivePtrNet.from_ptr_net(solver.model)
    return lambda: model.greedy(inputs, int(max_tokens[0]))[:, None]


def encoder(questions: Questions) -> Callable[[], object]:
    """Return a function that runs the encoder alone."""
    solver, (inputs, lengths, _) = questions.solver(), questions.tensors()

    def run() -> object:
        with torch.no_grad():
            return solver.model.encode(inputs, lengths)

    return run
