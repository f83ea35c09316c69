"""The interface of tasks. A task defines its instances, answers and metrics, but no network.

The class `Task` has three parts: methods that tasks must define, methods that tasks may define, and
methods that all tasks share.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from ptrnet.errors import InputError
from ptrnet.geometry import fit_unit_cube
from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.settings import Settings, setting
from ptrnet.tasks.schema import NO_LAYOUT, Layout, Schema
from ptrnet.types import END, Ends, Example, Floats, Indices, pad, real, trim

if TYPE_CHECKING:
    from torch import Tensor

    from ptrnet.constraints import Constraint
    from ptrnet.metrics import Scores

Choice = tuple[Indices, float]  # an answer, and its log-probability


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """What the rest of ptrnet has to know about a task, besides its methods.

    Args:
        num_features: how many numbers an element has, d.
        optional_features: how many of the last features an array may lack. They are 0 then.
        machine: what `Task.begin`, `mask` and `advance` delegate to: a name of
            `ptrnet.constraints.MACHINES`, or a function without arguments that makes a constraint.
        labellers: names of algorithms that compute answers; the first is the default. Plug-ins may
            add more: `ptrnet.labellers.names_for`.
        may_be_unproved: whether a labeller of the task promises proofs, but may run out of time
            before it finds one.
        distances: names of the distances that the task supports.
        labelled_as: a function that returns instances `(B, n, d)` as labellers expect them, such
            as pages turned so that lines run from left to right. None: as they are.
        takes_matrices: whether labellers accept matrices of distances.
        drawn_in_order: whether `sample` returns elements in the order of the right answer. Whoever
            draws then shuffles them, and needs no labeller.
        min_elements: the smallest number of elements of an instance.
        min_length: the smallest number of indices in an answer: 0 or 1.
        item_size: the number of indices in an item of an answer.
        answer: the number of elements in an answer: any number, all, or one.
        repeats: whether a sequence of tokens may repeat an element.
        ways: the number of tokens of each element; see `ptrnet.problems.Problem`.
        special_names: the names of the special slots in pictures: END, and those that the task
            adds.
        fixed: the number of leading elements that augmentation must not permute.
        symmetric: whether answers stay right if the unit square is rotated by 90 degrees or
            mirrored.
        decomposable: whether the answer to an instance follows from the answers to its parts. For
            example, the hull of a set of points follows from the hulls of its parts. `Incremental`
            decoding needs this.
        circular: whether an answer is a closed tour, which may start anywhere and run in either
            direction.
        depends_on_indices: whether the canonical answer depends on the indices of elements. If
            `order` sorts the elements, it does not, because coordinates determine the order.
        exact_inputs: whether models get instances as float64.
        largest: the largest magnitude of the numbers of an instance.
        schema: how elements that are dictionaries become numbers; None if elements are numbers.
        layout: how the rows of tables hold the instances; empty if readers need to be told.
        number_names: the names of an element's d numbers; empty if the numbers have no names.
        relative_range: the standard deviation and the smallest value of each feature, divided by
            the feature's mean. Both arrays are `(d,)`. If a feature is 0 or negative in some
            training example, or unknown, they are 0 and 1. By default, this holds for all features.
        cost_name: what `costs` returns, such as "length"; empty if the task has no costs.
        stats: other numbers to report with a valid answer: functions of the instance and the
            answer, by name.
        kind: the kind of the answers to a user's own examples; empty for other tasks.
        cutoffs: the k of the metrics `ndcg@k` and `top@k`, if they are not the usual ones.
        gains: the gain of grade 0, 1, 2, ...; empty: `2^grade - 1`.
        metric: the main metric, which validations compute; empty if they only compute the loss.
        ties: a function that returns the grades `(n,)` which decide in training which orders of the
            elements are right. Elements with higher grades come first. Elements with equal grades
            may come in any order. Its arguments are n, the answer, and the grades `(m,)` of the
            elements in the answer, in the same order; None if the example has no grades. None: the
            task never has ties.
        mirror: how instances are read backwards; None if they cannot be.
        settle: a function that corrects an answer if it is wrong only because elements are nearly
            equal, which models cannot distinguish (`ptrnet.geometry.predicates`). Its arguments are
            the instance `(n, d)` as the user gave it, and a valid answer. Answers that are wrong
            for other reasons are returned unchanged. None if the task has no exact rule.
        ends: how tours obey where they begin and end; None if answers are not tours.
        improve: a function that makes small changes to a valid answer to an example. It returns a
            valid answer that costs no more. None if answers are not improved.
        rounded_points: a function that returns the points `(n, 2)` of an instance if its distances
            are rounded by EUC_2D, else None. Tasks with `distances` do not need it.
        keeps_equal: whether answers may have several of the elements that are equal.
        field_names: the names of an instance's fields, if it is a dictionary in files.
        scaling: how an exported program does what `normalize` does, by its "kind": "unit-cube",
            "none", or "standardize" with a "center", a "spread" and a "clip".
        token_limit: the numbers of a formula for `max_length(n)`, if it is not linear in n:
            `ceil(per_element * n) + plus`, clipped to `least` and `most`.
        instance_format: how an exported program makes an array of a dictionary; None if an instance
            is no dictionary.
        feature_sizes: a function that returns how many features a network reads of an element, and
            of the whole instance, if it reads the states of the task. None if no network does.
        in_torch: whether a network of the task is computed in torch alone, so that it can be
            exported.
        quick_labels: whether the first labeller is quick enough to show its answer beside that of a
            network.
        has_picture: whether `draw` returns a picture.
        stdout_format: the format of printed answers if there is no input file.
        recipe: defaults of training options, if they differ from the general defaults.
        free_settings: settings of the task that may change after the training, because the same
            network serves all of their values.
    """

    num_features: int
    machine: "str | Callable[[], Constraint]"
    optional_features: int = 0
    labellers: tuple[str, ...] = ()
    labelled_as: Callable[[Floats], Floats] | None = None
    drawn_in_order: bool = False
    may_be_unproved: bool = False
    distances: tuple[str, ...] = (EUCLIDEAN,)
    takes_matrices: bool = False
    min_elements: int = 1
    min_length: int = 1
    item_size: int = 1
    answer: Literal["any", "all", "one"] = "any"
    repeats: bool = False
    ways: int = 1
    special_names: tuple[str, ...] = ("end",)
    fixed: int = 0
    symmetric: bool = False
    decomposable: bool = False
    circular: bool = False
    depends_on_indices: bool = False
    exact_inputs: bool = False
    largest: float = sys.float_info.max
    schema: Schema | None = None
    layout: Layout = NO_LAYOUT
    number_names: tuple[str, ...] = ()
    relative_range: tuple[Floats, Floats] = None  # type: ignore[assignment]
    cost_name: str = ""
    stats: Mapping[str, Callable[[Floats, Indices], float]] = field(default_factory=dict)
    kind: str = ""
    cutoffs: tuple[int, ...] = ()
    gains: tuple[float, ...] = ()
    metric: str = ""
    ties: Callable[[int, Indices, Floats | None], Floats] | None = None
    mirror: "Mirror | None" = None
    settle: Callable[[Floats, Indices], Indices] | None = None
    ends: "TourEnds | None" = None
    improve: Callable[[Example, Indices], Indices] | None = None
    rounded_points: Callable[[Floats], Floats | None] | None = None
    keeps_equal: bool = True
    field_names: tuple[str, ...] = ()
    scaling: Mapping[str, Any] = field(default_factory=lambda: {"kind": "unit-cube"})
    token_limit: Mapping[str, float] | None = None
    instance_format: Mapping[str, Any] | None = None
    feature_sizes: Callable[[], tuple[int, int]] | None = None
    in_torch: bool = True
    quick_labels: bool = True
    has_picture: bool = True
    stdout_format: str = "txt"
    recipe: Mapping[str, Any] = field(default_factory=dict)
    free_settings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.relative_range is None:
            zeros, ones = np.zeros(self.num_features), np.ones(self.num_features)
            object.__setattr__(self, "relative_range", (zeros, ones))

    @property
    def has_costs(self) -> bool:
        """Whether the task defines `costs`."""
        return bool(self.cost_name)

    @property
    def signs(self) -> Indices:
        """`(d,)`: the sign of each feature; see `Schema.signs`. 0: it has none."""
        return np.zeros(self.num_features, int) if self.schema is None else self.schema.signs

    @property
    def num_specials(self) -> int:
        """The number of special slots of the pointer, S."""
        return len(self.special_names)


class TourEnds(NamedTuple):
    """How a network's tours come to obey `Example.rules`: functions of `ptrnet.tasks.tsp.ends`."""

    # Returns the example, with the ends that a user asks for as rules.
    required: Callable[[Example, Ends], Example]
    # Returns the elements with which an answer to the example must begin.
    beginning: Callable[[Example], list[int]]
    # Returns the tour, changed so that it obeys the rules.
    obey: Callable[[Example, Indices], Indices]
    # Returns the best path after trying other free ends. Arguments: the example, the best answer
    # with its log-probability, and a function that answers copies of the example.
    best: Callable[[Example, Choice, Callable[[list[Example]], Iterable[Sequence[Choice]]]], Choice]
    # Returns why networks cannot answer an instance; empty if they can.
    unreadable: Callable[[Example], str]


class Mirror(NamedTuple):
    """How instances are read backwards, such as job shops with each job reversed."""

    # Returns instances `(B, n, d)` read backwards. Twice gives the original instances.
    inputs: Callable[[Floats], Floats]
    # Returns answers to the backwards instances, given valid answers to the original instances. A
    # returned answer must not cost more than the given answer.
    answers: Callable[[Floats, Sequence[Indices]], Sequence[Indices]]


@dataclass(frozen=True)
class Drawing:
    """A picture of an answer: points and lines, or the bars of a schedule.

    Args:
        points: `(n, 2)`.
        lines: polylines `(num_points, 2)`, in the order of the answer.
        equal_axes: whether both axes have the same scale.
        has_colors: whether the lines have different colors.
        axes: names of the x and the y axis, used if the features have no names.
        bars: a schedule (Gantt chart), drawn instead of points and lines.
        outlines: closed polygons `(num_corners, 2)` of the elements, drawn below the lines.
    """

    points: Floats
    lines: Sequence[Floats]
    equal_axes: bool = True
    has_colors: bool = False
    axes: tuple[str, str] = ("", "")
    bars: Sequence["Bar"] = ()
    outlines: Sequence[Floats] = ()


class Bar(NamedTuple):
    """A bar of a schedule."""

    row: int  # such as a machine; 0 is the uppermost row
    start: float  # time at which the bar starts
    length: float  # time from the start of the bar to its end
    group: int  # such as the number of a job; the bars of a group share a color


@dataclass(frozen=True)
class TaskSettings(Settings, ABC):
    """What `ptrnet.tasks.register` takes: a task, or a problem from which ptrnet makes a task.

    Fields made by `ptrnet.settings.setting` are the settings of the task.
    """

    name: ClassVar[str]

    order: Literal["given", "lexicographic", "hilbert"] = setting(
        "given", "the order in which the model reads the elements; answers keep the given indices"
    )
    points: Literal[
        "uniform", "mixed", "gaussian", "clustered", "curves", "stretched", "grid", "duplicates"
    ] = setting("uniform", "the distribution of the elements of random instances")

    @abstractmethod
    def _task(self) -> "Task":
        """Return the task with these settings."""


@dataclass(frozen=True)
class Task(TaskSettings):
    """Base class of tasks, and the constraint on their answers.

    An instance is an array `(n, d)`: n elements of d numbers. An answer is an array of 0-based
    indices of elements, `(m,)`. If the items of an answer are tuples of indices, such as
    triangles, the answer is `(t, item_size)`.
    """

    # ---- Members that a task must define.

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """What the rest of ptrnet has to know about the task."""

    @abstractmethod
    def max_length(self, n: int) -> int:
        """The largest number of tokens in an answer to an instance of n elements, without END."""

    @abstractmethod
    def answer_error(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        """Return why no instance of n elements has the answer `outputs`; None if one may have it.

        Args:
            n: number of elements of the instance.
            outputs: the answer, 0-based; all indices are in range.
            first: the number of the first element in messages: 1 for files that count from 1.
        """

    @abstractmethod
    def score(self, examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, "Scores"]:
        """Score each answer against the outputs of its example, by the metrics of the task.

        Returns:
            For each metric `(B,)` booleans (right or wrong) or floats. A score is NaN if the metric
            is not defined for an answer. All metrics are present even if B is 0.
        """

    @abstractmethod
    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """Return the picture of an answer."""

    # ---- Members that a task may define.

    def canonicalize(self, inputs: Floats, answers: Sequence[Indices]) -> Sequence[Indices]:
        """Return the answers in canonical form, in which equivalent answers are equal.

        Models are trained to give answers in this form.

        Args:
            inputs: `(B, n, d)` instances of one size.
            answers: a valid answer to each instance.
        """
        return answers

    def read_instance(self, row: dict[str, Any], source: str) -> Any:
        """Remove the instance from `row`, a parsed JSON line, and return it unchecked.

        Raises:
            InputError: a key is missing.
        """
        if "inputs" not in row:
            raise InputError(f'{source}: expected the key "inputs"')
        return row.pop("inputs")

    def write_instance(self, example: Example) -> dict[str, Any]:
        """Return the keys and values that hold an instance in a line of JSON."""
        return {"inputs": example.elements or example.inputs.tolist()}

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        """Draw instances `(count, n, d)` in the unit cube from the distribution `points`."""
        from ptrnet.geometry.sampling import sample_points

        return sample_points(self.points, rng, (count, n, self.facts.num_features))

    def instance_error(self, inputs: Floats) -> str | None:
        """Return why an instance has no answer, or None if the instance has an answer."""
        return None

    def infeasible(self, inputs: Sequence[Floats], outputs: Sequence[Indices]) -> list[str | None]:
        """Return why each answer is not valid for its instance, or None for a valid answer.

        The answers have passed `answer_error`, which does not know the instances.
        """
        return [None] * len(outputs)

    def normalize(self, inputs: Floats) -> Floats:
        """Return instances `(..., n, d)` as models read them: in the unit cube."""
        return fit_unit_cube(inputs)

    def to_tokens(self, answers: Sequence[Indices]) -> list[Indices]:
        """Return the sequences of tokens that models are trained to give, including END."""
        indices, lengths = pad(answers)
        tokens = np.pad(indices + self.facts.num_specials, ((0, 0), (0, 1)))
        tokens[~real(lengths, tokens.shape[1])] = END
        return trim(tokens, lengths + 1)

    def from_tokens(self, tokens: Indices) -> Indices:
        """Convert a sequence of tokens `(m,)`, without END, to an answer."""
        return tokens[tokens >= self.facts.num_specials] - self.facts.num_specials

    def costs(self, example: Example, answers: Sequence[Indices]) -> Floats | None:
        """Return the cost of each answer; lower is better.

        If the task has no costs, return None. Then answers can only be compared with the right
        answer.
        """
        return None

    # ---- Members that all tasks share.

    def begin(self, inputs: "Tensor", lengths: "Tensor") -> Any:
        """Return the state of `ptrnet.constraints.Constraint` before the first token."""
        return self._machine.begin(inputs, lengths)

    def mask(self, state: Any) -> "Tensor":
        """Return `(B, K, S + N)` boolean: the tokens that may come next."""
        return self._machine.mask(state)

    def advance(self, state: Any, parents: "Tensor", tokens: "Tensor") -> Any:
        """Return the state after prefixes `parents` `(B, K)` are followed by `tokens` `(B, K)`."""
        return self._machine.advance(state, parents, tokens)

    @cached_property
    def _machine(self) -> "Constraint":
        from ptrnet.constraints import machine_of  # needs torch, so import it only here

        return machine_of(self.facts)

    def _task(self) -> "Task":
        return self

    def _settings(self) -> TaskSettings:
        """Return what has the settings of the task, as `ptrnet.tasks.get` takes them."""
        return self

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order == "hilbert" and self.facts.num_features != 2:
            raise InputError(
                f"order: hilbert takes elements of 2 numbers, got {self.facts.num_features}"
            )


def duplicate_error(outputs: Indices, first: int) -> str | None:
    """Return the error of an answer that repeats an element, or None if it repeats none."""
    values = outputs.ravel().tolist()
    if len(set(values)) == len(values):
        return None
    repeated, counts = np.unique(values, return_counts=True)
    return f"each index at most once, got {repeated[counts > 1][0] + first} twice"


def with_ends(examples: Iterable[Example], task: Task, ends: Ends) -> Iterable[Example]:
    """Return the examples, with rules for where their tours begin and end.

    Raises:
        InputError: the task is not `tsp`, a city does not exist, or no tour obeys the rules.
    """
    check_ends(task, ends)
    if task.facts.ends is None or ends == Ends():
        return examples
    return (task.facts.ends.required(example, ends) for example in examples)


def check_ends(task: Task, ends: Ends) -> None:
    """Raise InputError if ends are given, but the task is not `tsp`."""
    if ends != Ends() and task.facts.ends is None:
        raise InputError(f"start, end and open need task tsp, got {task.name}")
