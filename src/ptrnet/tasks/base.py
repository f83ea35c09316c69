"""What a task is: everything about one kind of question, and nothing about networks."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ptrnet.distances import EUCLIDEAN
from ptrnet.errors import InputError, unknown
from ptrnet.geometry import hilbert_order, lexicographic_order
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


def setting(default: Any, help: str) -> Any:
    """A field of a task's dataclass, with what the command line says of it."""
    return field(default=default, metadata={"help": help}, kw_only=True)


@dataclass(frozen=True)
class Task(ABC):
    """A task; its settings are the fields of its dataclass."""

    name: ClassVar[str]
    features: ClassVar[int]  # d, the numbers an element has
    labellers: ClassVar[tuple[str, ...]]  # the first is the default; none knows a user's own task
    smallest: ClassVar[int] = 1  # the fewest elements that have an answer
    least: ClassVar[int] = 1  # the fewest indices that an answer has
    corners: ClassVar[int] = 1  # indices in an item of the answer; of more it is (t, corners)
    mark: ClassVar[str] = ""  # the word that the text format has between items
    subset: ClassVar[bool] = False  # the answer shrinks to a subset of what its parts answer
    closing_repeat: ClassVar[bool] = False  # the text format repeats the first index at the end
    symmetric: ClassVar[bool] = False  # answers stay right when the square is turned or mirrored
    circular: ClassVar[bool] = False  # answers stay right from any place on, and backwards
    distances: ClassVar[tuple[str, ...]] = (EUCLIDEAN,)  # that its instances can ask for

    order: Literal["given", "lexicographic", "hilbert"] = setting(
        "given", "in which the model reads the elements; answers are of the given one"
    )

    def __post_init__(self) -> None:
        if self.order == "hilbert" and self.features != 2:
            raise InputError(
                f"order of task {self.name}: hilbert takes elements of 2 numbers, "
                f"here they are of {self.features}"
            )

    @classmethod
    def settings(cls) -> list[str]:
        """The names of the settings."""
        return [f.name for f in fields(cls)]

    @property
    def specials(self) -> int:
        """The special slots of the pointer; END alone where the task adds none."""
        return 1

    @property
    def repeats(self) -> bool:
        """Whether a sequence of tokens may have an element twice."""
        return False

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        """`(count, n, d)` fresh instances, uniform in the unit cube."""
        return rng.random((count, n, self.features))

    def unfit(self, inputs: Floats) -> str | None:
        """Why an instance has no answer; None if it has one."""
        return None

    def label(
        self, inputs: Floats, labeller: str | None = None, distance: str = EUCLIDEAN
    ) -> Answers:
        """Answers of `(B, n, d)` instances, in canonical order.

        Args:
            inputs: instances of one size.
            labeller: the algorithm; the task's first when None.
            distance: how far two elements are, for the tasks that measure it.

        Raises:
            InputError: the labeller does not serve this task, or so many elements.
        """
        from ptrnet import labellers  # compiles kernels: only where labels are computed

        self.check_labeller(labeller, inputs.shape[1])
        algorithm = labellers.get(labeller or self.labellers[0])
        measured = {} if distance == EUCLIDEAN else {"distance": distance}
        return self.canonical(inputs, algorithm(inputs, **measured))

    def check_labeller(self, labeller: str | None, n: int) -> None:
        """Refuses an algorithm that does not serve this task, or not n elements.

        Raises:
            InputError: with the nearest name, or with those that would serve.
            MissingExtraError: the algorithm needs a package that is not installed.
        """
        from ptrnet import labellers

        if not self.labellers:
            raise InputError(f"task {self.name} has no labeller: its examples bring their answers")
        name = labeller or self.labellers[0]
        if name not in self.labellers:
            raise unknown(f"labeller of task {self.name}", name, self.labellers)
        labellers.check_package(name)
        most = labellers.largest(name)
        if n > most:
            others = [other for other in self.labellers if labellers.largest(other) >= n]
            raise InputError(
                f"labeller {name}: expected at most {most:.0f} elements, got {n}; "
                f"{', '.join(others) or 'none'} would serve"
            )

    def rows(self, answers: Answers) -> list[Indices]:
        """Flat, padded answers one by one, in the shape that examples hold them."""
        if self.corners == 1:
            return answers.rows()
        return [row.reshape(-1, self.corners) for row in answers.rows()]

    def canonical(self, inputs: Floats, answers: Answers) -> Answers:
        """The same answers, each in the order that training asks for."""
        return answers

    def scaled(self, inputs: Floats) -> Floats:
        """Instances `(..., n, d)` as the model sees them.

        Each is moved into the unit cube when it is outside.
        """
        corner, top = inputs.min(-2, keepdims=True), inputs.max(-2, keepdims=True)
        inside = (corner >= 0).all(-1, keepdims=True) & (top <= 1).all(-1, keepdims=True)
        if inside.all():
            return inputs
        # Halved before it is subtracted: the range of 1e308 and -1e308 is no float.
        half = (top / 2 - corner / 2).max(-1, keepdims=True)
        moved = (inputs / 2 - corner / 2) / np.where(half > 0, half, 1)
        return np.where(inside, inputs, np.clip(moved, 0, 1))

    def arrangement(self, inputs: Floats) -> Indices:
        """`(B, n)`: the elements of `(B, n, d)` instances in the order that the model reads."""
        if self.order == "lexicographic":
            return lexicographic_order(inputs)
        if self.order == "hilbert":
            return hilbert_order(inputs)
        return np.tile(np.arange(inputs.shape[1]), (len(inputs), 1))

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
    def rule(self) -> "Constraint":
        """What a valid answer obeys."""

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

    def is_right(self, example: Example, outputs: Indices) -> bool:
        """Whether `outputs` are as good as the example's own answer."""
        return self.measure([example], [outputs])["accuracy"].value == 1

    def costs(self, example: Example, answers: Sequence[Indices]) -> Floats | None:
        """How good answers are, less is better, where that shows without knowing the right one."""
        return None

    def facts(self, answered: Example) -> dict[str, float]:
        """What else is said of an answer, in the units of its file."""
        return {}

    @abstractmethod
    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """The picture of one answer."""


def repeated(outputs: Indices, first: int) -> str | None:
    """The complaint about an answer in which an element stands twice."""
    values, counts = np.unique(outputs, return_counts=True)
    if (counts > 1).any():
        return f"each index at most once, got {values[counts > 1][0] + first} twice"
    return None
