"""Answers of the shipped Ptr-Net: greedy decoding, beam search, and a step of the decoder.

Answers are unconstrained and in float32, as those of the naive Ptr-Net, which has the same weights
and takes the same steps. The roofline is the time of the products alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ptrnet import tasks, weights
from ptrnet.bench import roofline
from ptrnet.bench.harness import Baseline, Case, Result, Row, Setup, Side, measure
from ptrnet.bench.naive import NaivePtrNet
from ptrnet.data import checks
from ptrnet.data.sizes import Sizes
from ptrnet.data.symmetries import permute_elements
from ptrnet.decoding import Beam, Decoder, Greedy
from ptrnet.errors import InputError
from ptrnet.solver import Solver
from ptrnet.training.hardware import device_of
from ptrnet.training.recipe import LARGEST_BATCH

TIMES_TRAINED = 10  # the second size, as a multiple of the largest size of the model's training
BEAM_SIZE = 8
SLOW_EVERY = 4  # rounds, of beam search and the naive side
GREEDY, BEAM, NAIVE, ENCODER, PRODUCT = "greedy", "beam", "naive", "encoder", "product"  # sides

Run = Callable[[], Tensor]  # returns tokens (B, K, M)


def rows(
    task: str = "hull",
    n: int | None = None,
    batch_size: int = 128,
    device: str = "cpu",
    repeats: int = 8,
    seed: int = 0,
) -> Iterator[Row]:
    """Rows for each size of the instances. Raises InputError if they cannot be answered."""
    kind, device = tasks.get(task), device_of(device)
    trained = Sizes(weights.summary(ptr_net_of(task))["n"])[-1]
    sizes = [trained, TIMES_TRAINED * trained] if n is None else Sizes(n)
    checks.check_sizes(sizes, kind)
    if batch_size * sizes[-1] > LARGEST_BATCH:
        raise InputError(f"batch size: {batch_size} instances of {sizes[-1]} are too many elements")
    questions = [Questions(task, size, batch_size, device, seed) for size in sizes]
    cases = [Decoding(questions[0], repeats, {GREEDY: greedy, BEAM: beam, NAIVE: naive})]
    cases += [Decoding(larger, repeats, {GREEDY: greedy}) for larger in questions[1:]]
    return measure("solve", cases)


def ptr_net_of(task: str) -> str:
    """The name of the shipped Ptr-Net of a task."""
    name = f"{task}-ptr-net"
    return name if name in weights.names() else task


@dataclass(frozen=True)
class Questions:
    """A batch of fresh instances for the shipped Ptr-Net of a task."""

    task: str
    n: int
    batch_size: int
    device: str
    seed: int

    def solver(self) -> Solver:
        """The shipped Ptr-Net, on the device."""
        solver = weights.load(ptr_net_of(self.task))
        solver.model.to(self.device)
        return solver

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs `(B, N, d)` as the model reads them, lengths and maximal answer lengths `(B,)`."""
        task = self.solver().task
        drawn = task.sample(np.random.default_rng(self.seed), self.batch_size, self.n)
        inputs = torch.from_numpy(
            permute_elements(drawn, task.element_order(drawn)).astype(np.float32)
        )
        lengths = torch.full((self.batch_size,), self.n)
        max_tokens = torch.full((self.batch_size,), task.max_length(self.n))
        return inputs.to(self.device), lengths.to(self.device), max_tokens.to(self.device)


class Decoding(Case):
    """Decoders, `greedy` among them, on one batch."""

    def __init__(
        self, questions: Questions, rounds: int, decoders: dict[str, Callable[[Questions], Run]]
    ) -> None:
        self.questions, self.rounds, self.decoders = questions, rounds, decoders
        self.device, self.title = questions.device, f"n={questions.n}"

    def setups(self) -> dict[str, Setup]:
        return {name: partial(decode, self.questions) for name, decode in self.decoders.items()}

    def sides(self) -> dict[str, Side]:
        product, self.product_operations = roofline.product(torch.float32, self.device)
        self.runs = {name: decode(self.questions) for name, decode in self.decoders.items()}
        sides = {ENCODER: Side(encoder(self.questions)), PRODUCT: Side(product)}
        for name, run in self.runs.items():
            sides[name] = Side(run, 1 if name == GREEDY else SLOW_EVERY, warmups=1)
        return sides

    def rows(self, result: Result) -> Iterator[Row]:
        baseline = None
        if NAIVE in self.runs:
            baseline = Baseline(
                NAIVE,
                result.median(NAIVE),
                result.ratio(NAIVE, GREEDY),
                result.peak_mb[NAIVE],
            )
        yield self._row(result, GREEDY, 1, f"greedy, {self.title}", baseline)
        if BEAM in self.runs:
            yield self._row(result, BEAM, BEAM_SIZE, f"beam of {BEAM_SIZE}, {self.title}", None)

    def _row(
        self, result: Result, side: str, beam_size: int, name: str, baseline: Baseline | None
    ) -> Row:
        questions, solver = self.questions, self.questions.solver()
        units = solver.model.settings()["hidden_size"]
        steps = self.runs[side]().shape[2]
        step_ms = (result.median(side) - result.median(ENCODER)) / steps
        times_greedy = result.ratio(side, GREEDY)
        prefixes = 1 + (steps - 1) * beam_size  # of an instance, over all steps
        slots = questions.n + solver.task.num_specials
        operations = roofline.operations(questions.batch_size, units, questions.n, slots, prefixes)
        rate = self.product_operations / result.median(PRODUCT)
        note = f"{steps} steps of {step_ms:.3g} ms"
        return Row(
            measurement="solve",
            name=name,
            time=result.spread(side),
            count=questions.batch_size,
            unit="instances",
            facts={
                "task": questions.task,
                "n": questions.n,
                "batch_size": questions.batch_size,
                "hidden_size": units,
                "beam_size": beam_size,
                "decoder_steps": steps,
                "decoder_step_ms": step_ms,
                "times_greedy": times_greedy,
            },
            roofline_ms=operations / rate,
            baseline=baseline,
            peak_mb=result.peak_mb[side],
            note=note if side == GREEDY else f"{note}; {times_greedy:.1f} times greedy",
        )


def greedy(questions: Questions) -> Run:
    """A function that decodes greedily by the library."""
    return _search(questions, Greedy())


def beam(questions: Questions) -> Run:
    """A function that runs the library's beam search."""
    return _search(questions, Beam(BEAM_SIZE))


def naive(questions: Questions) -> Run:
    """A function that decodes greedily by the naive Ptr-Net."""
    solver, (inputs, _, max_tokens) = questions.solver(), questions.tensors()
    model = NaivePtrNet.from_ptr_net(solver.model)
    return lambda: model.greedy(inputs, int(max_tokens[0]))[:, None]


def encoder(questions: Questions) -> Callable[[], object]:
    """A function that runs the encoder alone, which comes before the decoder's first step."""
    solver, (inputs, lengths, _) = questions.solver(), questions.tensors()

    def run() -> object:
        with torch.no_grad():
            return solver.model.encode(inputs, lengths)

    return run


def _search(questions: Questions, decoder: Decoder) -> Run:
    solver, tensors = questions.solver(), questions.tensors()
    return lambda: decoder.decode(solver.model, *tensors).tokens
