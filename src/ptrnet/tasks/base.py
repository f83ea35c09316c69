"""What a task is: everything about one kind of question, and nothing about networks."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ptrnet.errors import unknown
from ptrnet.types import Answers, Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.constraints import Constraint
    from ptrnet.metrics.interval import Measure


@dataclass(frozen=True)
class Drawing:
    """What a picture of an answer is made of."""

    points: Floats  # (n, 2)
    lines: Sequence[Floats]  # each (k, 2), in the order of the answer
    equal_axes: bool = True  # whether both axes have one unit


@dataclass(frozen=True)
class Task(ABC):
    """A task; its settings are the fields of its dataclass."""

    name: ClassVar[str]
    features: ClassVar[int]  # d, the numbers an element has
    specials: ClassVar[int] = 1  # special slots of the pointer: END alone
    labellers: ClassVar[tuple[str, ...]]  # the first is the default
    closing_repeat: ClassVar[bool] = False  # the text format repeats the first index at the end

    @classmethod
    def settings(cls) -> list[str]:
        """The names of the settings."""
        return [f.name for f in fields(cls)]

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        """`(count, n, d)` fresh instances, uniform in the unit cube."""
        return rng.random((count, n, self.features))

    def label(self, inputs: Floats, labeller: str | None = None) -> Answers:
        """Answers of `(B, n, d)` instances, in canonical order."""
        from ptrnet import labellers  # compiles kernels: only where labels are computed

        self.check_labeller(labeller)
        algorithm = labellers.get(labeller or self.labellers[0])
        return self.canonical(inputs, algorithm(inputs))

    def check_labeller(self, labeller: str | None) -> None:
        """Raises InputError, with the nearest name, for one that does not serve this task."""
        if labeller is not None and labeller not in self.labellers:
            raise unknown(f"labeller of task {self.name}", labeller, self.labellers)

    def canonical(self, inputs: Floats, answers: Answers) -> Answers:
        """The same answers, each in the order that training asks for."""
        return answers

    def scaled(self, inputs: Floats) -> Floats:
        """One instance as the model sees it: moved into the unit cube when it is outside."""
        low, high = inputs.min(initial=np.inf), inputs.max(initial=-np.inf)
        if low >= 0 and high <= 1:
            return inputs
        # Halved before it is subtracted: the range of 1e308 and -1e308 is no float.
        corner = inputs.min(0)
        half = (inputs.max(0) / 2 - corner / 2).max()
        if half == 0:
            return np.zeros_like(inputs)
        return np.clip((inputs / 2 - corner / 2) / half, 0, 1)

    def tokens(self, answers: Answers) -> Answers:
        """The sequences a model is trained to emit, END included."""
        batch, width = answers.indices.shape
        tokens = np.zeros((batch, width + 1), np.int64)
        inside = np.arange(width) < answers.lengths[:, None]
        tokens[:, :width][inside] = answers.indices[inside] + self.specials
        return Answers(tokens, answers.lengths + 1)

    def answer(self, tokens: Indices) -> Indices:
        """The answer that a sequence of tokens, END left out, stands for."""
        return tokens[tokens >= self.specials] - self.specials

    @abstractmethod
    def longest(self, n: int) -> int:
        """The most tokens, END left out, that an answer to `n` elements can have."""

    @property
    @abstractmethod
    def constraint(self) -> "Constraint":
        """The rule that a valid answer obeys."""

    @abstractmethod
    def complaint(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        """Why `outputs` cannot be an answer to any instance of `n` elements; None if it can.

        Indices are shown counted from `first`.
        """

    @abstractmethod
    def measure(
        self, examples: Sequence[Example], answers: Iterable[Indices]
    ) -> dict[str, "Measure"]:
        """The metrics of papers' tables, of answers against the examples' own."""

    @abstractmethod
    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """The picture of one answer."""


def repeated(outputs: Indices, first: int) -> str | None:
    """The complaint about an answer in which an element stands twice."""
    values, counts = np.unique(outputs, return_counts=True)
    if (counts > 1).any():
        return f"each index at most once, got {values[counts > 1][0] + first} twice"
    return None
