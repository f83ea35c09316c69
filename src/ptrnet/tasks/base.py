"""What a task is: everything about one kind of question, and nothing about networks.

`Task` has three parts: what each task must define, what it may define, and what all tasks share.
Its base class `Labelling` computes answers by an algorithm."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, unknown
from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.geometry.points import fit_unit_cube, hilbert_order, lexicographic_order
from ptrnet.settings import Settings, setting
from ptrnet.tasks.schema import Schema
from ptrnet.types import CLOSED, END, Answers, Example, Floats, Indices, TourRules

if TYPE_CHECKING:
    from ptrnet.constraints import Constraint
    from ptrnet.metrics.interval import Measure, Moments, Scores


class Labelling(ABC):
    """Base class of `Task`: `label` computes answers, `check_labeller` says whether it can."""

    name: ClassVar[str]
    labellers: ClassVar[tuple[str, ...]]  # names of algorithms; the first is the default
    may_be_unproved: ClassVar[bool] = False  # whether a labeller may give less than it promises
    distances: ClassVar[tuple[str, ...]] = (EUCLIDEAN,)  # between elements, that the task knows

    takes_matrices: ClassVar[bool] = False  # of distances in place of elements, for its labellers

    def canonicalize(self, inputs: Floats, answers: Answers) -> Answers:
        """Equal answers in one form, the one that models are trained to give.

        Args:
            inputs: `(B, n, d)` instances of one size.
            answers: one of each; valid.
        """
        return answers

    def label(
        self, inputs: Floats, labeller: str | None = None, distance: str = EUCLIDEAN
    ) -> Answers:
        """Answers of `(B, n, d)` instances of one size, in canonical form.

        Args:
            inputs: the instances.
            labeller: the algorithm; the task's first when None.
            distance: between two elements, one of the task's `distances`.

        Raises:
            InputError: the labeller does not serve this task, or so many elements.
        """
        self.check_labeller(labeller)
        return self.label_with_proof(inputs, labeller, distance)[0]

    def label_with_proof(
        self,
        inputs: Floats,
        labeller: str | None = None,
        distance: str = EUCLIDEAN,
        rules: TourRules = CLOSED,
    ) -> tuple[Answers, NDArray[np.bool_]]:
        """The answers of `label`, and `(B,)` whether each of them is what the labeller promises.

        It is not where the labeller promises a proof and has found none: `exact` may need too
        long, and gives its best tour then. The labeller is one that `check_labeller` has taken:
        what is called for every batch does not look for its package again.

        Raises:
            InputError: the labeller does not take so many elements.
        """
        from ptrnet import labellers  # compiles kernels: only where labels are computed

        self.check_max_elements(labeller, inputs.shape[1])
        options: dict[str, Any] = {} if distance == EUCLIDEAN else {"distance": distance}
        if rules != CLOSED:  # only `tsp` has any
            options["rules"] = rules
        name = labeller or self.labellers[0]
        answers, proved = labellers.label_with_proof(name, inputs, **options)
        if labellers.is_plugin(name):
            self.check_answers(answers, inputs, f"labeller {name}")
        return self.canonicalize(inputs, answers, **options), proved

    @abstractmethod
    def check_answers(self, answers: Answers, inputs: Floats, source: str) -> None:
        """Refuses what is no answer to `(B, n, d)` instances, and so would be learned from.

        Raises:
            InputError: `source`, the instance, what was expected, and what came.
        """

    def check_labeller(self, labeller: str | None) -> None:
        """Refuses an algorithm that does not serve this task.

        Raises:
            InputError: with the nearest name.
            MissingExtraError: the algorithm needs a package that is not installed.
        """
        from ptrnet import labellers

        if not self.labellers:
            raise InputError(f"task {self.name} has no labeller: its examples bring their answers")
        name = labeller or self.labellers[0]
        if name not in self.labellers:
            raise unknown(f"labeller of task {self.name}", name, self.labellers)
        labellers.check_package(name)

    def check_max_elements(self, labeller: str | None, n: int) -> None:
        """Refuses an algorithm of this task that does not take n elements.

        Raises:
            InputError: with those that would serve.
        """
        from ptrnet import labellers

        name = labeller or self.labellers[0]
        max_elements = labellers.max_elements(name)
        if n > max_elements:
            others = [other for other in self.labellers if labellers.max_elements(other) >= n]
            raise InputError(
                f"labeller {name}: expected at most {max_elements:.0f} elements, got {n}; "
                f"{', '.join(others) or 'none'} would serve"
            )


@dataclass(frozen=True)
class Drawing:
    """What a picture of an answer is made of.

    Args:
        points: `(n, 2)`.
        lines: each `(num_points, 2)`, in the order of the answer.
        equal_axes: whether both axes have one unit.
    """

    points: Floats
    lines: Sequence[Floats]
    equal_axes: bool = True


@dataclass(frozen=True)
class Task(Settings, Labelling):
    """A task. The fields of its dataclass, made by `ptrnet.settings.setting`, are its settings.

    An instance is an array `(n, d)`: n elements of d numbers. An answer is an array of 0-based
    indices into it, `(m,)`; where an item of it is more than one index, as in the triangles of a
    triangulation, `(t, item_size)`.
    """

    order: Literal["given", "lexicographic", "hilbert"] = setting(
        "given", "in which the model reads the elements; answers are of the given one"
    )
    points: Literal[
        "uniform", "mixed", "gaussian", "clustered", "curves", "stretched", "grid", "duplicates"
    ] = setting("uniform", "how the elements of drawn instances are spread")

    # ---- What a task must define: these, and the class variables `name` and `labellers`.

    @property
    @abstractmethod
    def num_features(self) -> int:
        """The numbers that an element has, d."""

    @abstractmethod
    def max_length(self, n: int) -> int:
        """The most tokens, END left out, that the answer to an instance of n elements can have."""

    @abstractmethod
    def build_constraint(self) -> "Constraint":
        """What a valid answer obeys, token by token: it masks the decoder's choices."""

    @abstractmethod
    def answer_error(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        """Why `outputs` cannot answer any instance of n elements; None if they can.

        Args:
            n: elements of the instance.
            outputs: the answer, 0-based; every index is in range.
            first: the number of the first element in the message: 1 for files that count from 1.
        """

    @abstractmethod
    def score(self, examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, "Scores"]:
        """The papers' metrics of each of `answers`, against the examples' outputs.

        Returns:
            By metric `(B,)`: right or wrong, or a float, NaN where the metric does not speak of an
            answer. All metrics are there also where B is 0.
        """

    @abstractmethod
    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """The picture of one answer."""

    # ---- What a task may define; `canonicalize` and `distances` too.

    min_elements: ClassVar[int] = 1  # the fewest elements of an instance
    item_size: ClassVar[int] = 1  # the indices of one item of an answer
    symmetric: ClassVar[bool] = False  # right answers stay right when the square is turned, flipped
    # Whether an answer has only elements that the answers to the instance's parts have, as the
    # hull of a set is the hull of its parts' hulls. Incremental decoding needs it.
    decomposable: ClassVar[bool] = False
    # Whether an answer is a closed tour: right from any of its elements on, in either direction.
    circular: ClassVar[bool] = False
    stdout_format: ClassVar[str] = "txt"  # of answers to instances that are of no file
    fixed: ClassVar[int] = 0  # leading elements that keep their places in any other view
    exact_inputs: ClassVar[bool] = False  # whether models get instances as float64
    recipe: ClassVar[Mapping[str, Any]] = {}  # defaults of its trainings, where they are others

    @property
    def special_names(self) -> tuple[str, ...]:
        """What pictures call the special slots: END alone, or with those that the task adds."""
        return ("end",)

    @property
    def min_length(self) -> int:
        """The fewest indices of an answer: 0 or 1."""
        return 1

    @property
    def num_specials(self) -> int:
        """The special slots of the pointer, S."""
        return len(self.special_names)

    @property
    def depends_on_indices(self) -> bool:
        """Whether the canonical answer depends on the order in which elements are read.

        Not where `order` sorts them: their coordinates then show their indices.
        """
        return False

    @property
    def schema(self) -> Schema | None:
        """How elements that are dictionaries become numbers; None where elements are numbers."""
        return None

    @property
    def repeats(self) -> bool:
        """Whether a sequence of tokens may have an element twice."""
        return False

    def free_constraint(self) -> "Constraint":
        """What an answer obeys in any case, whatever the task allows."""
        from ptrnet.constraints import Free

        return Free(self.min_length)

    def from_fields(self, fields: Mapping[str, Any], source: str) -> Any:
        """Return what a dictionary given in place of an instance stands for: here, itself.

        A problem makes an array of it. Tasks of elements with fields take a list of dictionaries
        as one instance, so that each of these is an element.
        """
        return fields

    def read_instance(self, row: dict[str, Any], source: str) -> Any:
        """Take an instance, in any form that is to be checked, out of the object of a JSON line.

        Raises:
            InputError: a key is missing.
        """
        if "inputs" not in row:
            raise InputError(f'{source}: expected the key "inputs"')
        return row.pop("inputs")

    def write_instance(self, example: Example) -> dict[str, Any]:
        """The keys of a JSON line that hold an instance."""
        return {"inputs": example.elements or example.inputs.tolist()}

    @property
    def answer(self) -> Literal["any", "all", "one"]:
        """How many elements an answer has: any number, all, or one."""
        return "any"

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        """`(count, n, d)` fresh instances in the unit cube, spread as `points` says."""
        from ptrnet.geometry.sampling import sample_points

        return sample_points(self.points, rng, (count, n, self.num_features))

    def instance_error(self, inputs: Floats) -> str | None:
        """Why an instance has no answer; None if it has one."""
        return None

    def beginning(self, example: Example) -> list[int]:
        """The elements with which a network has to begin the example's answer, by its rules."""
        return []

    def obey(self, example: Example, outputs: Indices) -> Indices:
        """The answer to `example` that obeys its rules, of a network's answer in canonical form."""
        return outputs

    def unreadable(self, example: Example) -> str | None:
        """Why no network can answer an instance that algorithms can; None if one can."""
        return None

    def left_out(self, inputs: Floats) -> tuple[int, int] | None:
        """An element that no answer has, because it equals another one, and that one; or None."""
        return None

    def infeasible(self, inputs: Floats, outputs: Indices) -> str | None:
        """Why `outputs`, to which `answer_error` has no objection, cannot answer this instance."""
        return None

    def normalize(self, inputs: Floats) -> Floats:
        """Instances `(..., n, d)` as the model reads them: in the unit cube."""
        return fit_unit_cube(inputs)

    def settle(self, inputs: Floats, outputs: Indices) -> Indices:
        """A model's answer to `(n, d)` elements, exact where it is right up to the resolution.

        Models cannot tell elements apart that are nearly equal (`ptrnet.geometry.resolution`). A
        task may decide by its own exact rule what depends on them.

        Args:
            inputs: the instance, as the user gave it.
            outputs: a valid answer. Returned as it is, if it is wrong for other reasons.
        """
        return outputs

    def to_tokens(self, answers: Answers) -> Answers:
        """The sequences that a model is trained to emit, END included."""
        batch, width = answers.indices.shape
        tokens = np.full((batch, width + 1), END, np.int64)
        mask = answers.mask
        tokens[:, :width][mask] = answers.indices[mask] + self.num_specials
        return Answers(tokens, answers.lengths + 1)

    def from_tokens(self, tokens: Indices) -> Indices:
        """The answer that one sequence of tokens `(m,)`, END left out, stands for."""
        return tokens[tokens >= self.num_specials] - self.num_specials

    def score_elements(
        self, examples: Sequence[Example], scores: Sequence[Floats]
    ) -> dict[str, "Scores"]:
        """Metrics of a model's `(n,)` scores of each example's elements; none by default.

        Returns:
            As of `score`.
        """
        return {}

    def summarize(self, moments: Mapping[str, "Moments"]) -> dict[str, "Measure"]:
        """All scores together, by metric: shares that are right, and means, with intervals."""
        from ptrnet.metrics.interval import summarize

        return summarize(moments)

    def measure(
        self, examples: Sequence[Example], answers: Iterable[Indices]
    ) -> dict[str, "Measure"]:
        """The metrics of `answers`, one for each example, against the examples' outputs."""
        from ptrnet.metrics.interval import moments_of

        return self.summarize(moments_of(self.score(examples, answers)))

    def is_correct(self, example: Example, outputs: Indices) -> bool:
        """Whether `outputs` are as good as the example's."""
        return bool(self.score([example], [outputs])["accuracy"][0])

    def costs(self, example: Example, answers: Sequence[Indices]) -> Floats | None:
        """The cost of each answer, less is better; None where only the right answer would tell."""
        return None

    @property
    def has_costs(self) -> bool:
        """Whether `costs` tells the cost of any answer."""
        return type(self).costs is not Task.costs

    def grades(self, n: int, outputs: Indices, in_order: Floats | None) -> Floats | None:
        """`(n,)`: elements of equal grades are equally right at a step of an answer.

        None if an answer has no ties.

        Args:
            n: elements of the instance.
            outputs: the answer.
            in_order: the grades of its elements, `(m,)`, if the example has any.
        """
        return None

    def answer_stats(self, answered: Example) -> dict[str, float]:
        """Numbers that are reported with an answer, in the units of its file."""
        return {}

    # ---- What all tasks share.

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order == "hilbert" and self.num_features != 2:
            raise InputError(
                f"order: hilbert takes elements of 2 numbers, here they are of {self.num_features}"
            )

    def element_order(self, inputs: Floats) -> Indices:
        """`(B, n)`: the elements of `(B, n, d)` instances in the order in which they are read."""
        if self.order == "lexicographic":
            return lexicographic_order(inputs)
        if self.order == "hilbert":
            return hilbert_order(inputs)
        return np.tile(np.arange(inputs.shape[1]), (len(inputs), 1))

    def check_answers(self, answers: Answers, inputs: Floats, source: str) -> None:
        """Refuses what is no answer; see `Labelling`. An empty one is refused where it is used."""
        count, n = inputs.shape[:2]
        indices, lengths = (np.asarray(part) for part in answers)
        are_whole = indices.dtype.kind in "iu" and lengths.dtype.kind in "iu"
        if not are_whole or indices.ndim != 2 or len(indices) != count or lengths.shape != (count,):
            raise InputError(
                f"{source}: expected whole numbers ({count}, M) and their lengths ({count},), got "
                f"{indices.dtype} {indices.shape} and {lengths.dtype} {lengths.shape}"
            )
        longest = min(indices.shape[1], self.max_length(n))
        for k, (row, length) in enumerate(zip(indices, lengths.tolist(), strict=True)):
            instance = f"{source}: instance {k} of {n} elements: "
            if not 0 <= length <= longest:
                raise InputError(f"{instance}expected at most {longest} indices, got {length}")
            outputs = row[:length]
            outside = outputs[(outputs < 0) | (outputs >= n)]
            if outside.size:
                raise InputError(f"{instance}expected 0 to {n - 1}, got {outside[0]}")
            if length % self.item_size:
                raise InputError(
                    f"{instance}expected {self.item_size} indices an item, got {length}"
                )
            items = outputs if self.item_size == 1 else outputs.reshape(-1, self.item_size)
            complaint = self.answer_error(n, items) if length else None
            if complaint:
                raise InputError(f"{instance}{complaint}")

    def unpad(self, answers: Answers) -> list[Indices]:
        """Flat, padded answers one by one, in the shape that examples have."""
        if self.item_size == 1:
            return answers.rows()
        return [row.reshape(-1, self.item_size) for row in answers.rows()]


def duplicate_error(outputs: Indices, first: int) -> str | None:
    """The `answer_error` of an answer in which an element occurs twice."""
    values = outputs.ravel().tolist()
    if len(set(values)) == len(values):
        return None
    repeated, counts = np.unique(values, return_counts=True)
    return f"each index at most once, got {repeated[counts > 1][0] + first} twice"
