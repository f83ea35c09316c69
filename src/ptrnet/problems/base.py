"""Problems, as a user writes them: what may come next, and what an answer costs.

A problem defines which choices are allowed next, and what an answer costs. A network learns from
the costs of its own answers. `ProblemTask` makes a problem a task like any other;
`docs/dev/problems.md` says how the two relate.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array
from numpy.typing import NDArray

from ptrnet.errors import InputError, short
from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.geometry.sampling import MIXED
from ptrnet.tasks.base import Drawing, Facts, Mirror, Task, TaskSettings, duplicate_error
from ptrnet.types import END, Example, Floats, Indices, pad

if TYPE_CHECKING:
    from torch import Tensor

    from ptrnet.metrics import Scores
    from ptrnet.problems.states import Features, States

# Arrays `(B, ...)` with one row for each instance of a batch: NumPy's, or torch's tensors if the
# problem has `array_api`.
State = dict[str, Any]
NUM_SPECIALS = 1  # END
# The members of a problem that its task's `Facts` have under the same names.
_FACTS = (
    *("num_features", "optional_features", "labellers", "may_be_unproved", "min_elements"),
    *("min_length", "repeats", "ways", "fixed", "symmetric", "largest", "number_names"),
    *("rounded_points", "field_names", "feature_sizes", "recipe"),
)
STAY = -1  # in place of a choice: the answer has ended


@dataclass(frozen=True)
class Problem(TaskSettings):
    """A problem, defined by six methods: `sample`, `start`, `allowed`, `features`, `step`, `cost`.

    The methods work on batches: arrays have a leading batch axis, and all instances of a batch have
    the same number of elements. No method may change its arguments.

    An instance is an array `(n, d)` with a row for each element: first the numbers of
    `element_fields`, then the numbers of `shared_fields`, which every row repeats. `pack` makes
    instances from named arrays, and `unpack` makes named arrays from instances. In files an
    instance is a JSON object whose keys are the names of the fields.

    A choice is the element that comes next. If `ways` is 2, the next element can be reached
    directly (way 0) or via element 0 (way 1). A choice is then `2 * element + way`. An answer lists
    the elements in the order in which they were chosen. If an element was reached via element 0, a
    0 comes before this element.

    Methods get arrays of NumPy. If they only use functions of the array API standard
    (`array_api_compat.array_namespace`), set `array_api`: then `start`, `allowed`, `features`,
    `step`, `may_end` and `remaining` also get tensors of torch, on the device of the network. Only
    then can a model be exported to ONNX.
    """

    element_fields: ClassVar[Mapping[str, int]]  # how many numbers each field of an element has
    shared_fields: ClassVar[Mapping[str, int]] = {}  # how many numbers each shared field has
    optional: ClassVar[Mapping[str, float]] = {}  # defaults of shared fields that files may lack
    ways: ClassVar[int] = 1  # ways to an element: 1, or 2 (directly, or via element 0)
    array_api: ClassVar[bool] = False  # whether methods that use states also take torch's tensors
    mixes: ClassVar[bool] = False  # whether `points` may be "mixed", for instances of many kinds
    fixed: ClassVar[int] = 0  # the first `fixed` elements, such as a depot, are never chosen
    repeats: ClassVar[bool] = False  # whether an element may come twice
    stats: ClassVar[tuple[str, ...]] = ()  # methods of an instance and an answer, see `Facts.stats`
    symmetric: ClassVar[bool] = False  # as in `ptrnet.tasks.base.Facts`, as the following ones
    min_elements: ClassVar[int] = 1
    may_be_unproved: ClassVar[bool] = False

    labellers: ClassVar[tuple[str, ...]] = ()
    largest: ClassVar[float] = 1e300  # costs are sums, which must not overflow
    min_length: ClassVar[int] = 0
    recipe: ClassVar[Mapping[str, Any]] = {
        "model": "state-ptr-net",
        "learning": "self-labelling",
        "n": "20",
        "steps": 2000,
        "batch_size": 32,
        "hidden_size": 128,
        "encoder_layers": 3,
        "learning_rate": 1e-3,
        "clip": 1.0,
        "valid_every": 200,
        "valid_batches": 8,
        "checkpoint_every": 200,
    }

    # ---- What a problem must define.

    @abstractmethod
    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        """Draw instances `(count, n, d)` of n elements. `pack` makes them from named arrays."""

    @abstractmethod
    def start(self, instance: Floats) -> State:
        """Return the state of instances `(B, n, d)` before the first choice.

        The state must hold everything that the other methods need, including parts of the
        instance, because most of these methods get only the state.
        """

    @abstractmethod
    def allowed(self, state: State) -> NDArray[np.bool_]:
        """Return which choices are allowed next: `(B, n)`, or `(B, n, 2)` if `ways` is 2.

        The answer ends if no choice is allowed.
        """

    @abstractmethod
    def features(self, state: State) -> tuple[Floats, Floats]:
        """Return the features that the network reads: numbers with magnitudes of about 1.

        The first array, `(B, n, f)`, has f features of each element. The second array, `(B, g)`,
        has g features of the whole instance.
        """

    @abstractmethod
    def step(self, state: State, choice: Indices) -> State:
        """Return the state after choices `(B,)`, which are all allowed."""

    @abstractmethod
    def cost(self, instance: Floats, answers: Indices) -> Floats:
        """Return the costs `(B,)` of answers `(B, m)` to instances `(B, n, d)`, to be minimized."""

    # ---- What a problem may define.

    def may_end(self, state: State) -> NDArray[np.bool_]:
        """Return `(B,)`, whether the answer may end although a choice is allowed. Default: no."""
        rows = next(iter(state.values()))
        xp = array_namespace(rows)
        of_rows = rows[(slice(None), *[0] * (rows.ndim - 1))]
        zeros: NDArray[np.bool_] = xp.zeros_like(of_rows, dtype=xp.bool)
        return zeros

    def remaining(self, state: State) -> NDArray[np.bool_]:
        """Return `(B, n)`, which elements the network still has to see. Default: all.

        The network encodes only these elements, so each element that is left out makes training
        faster. The result must be True for all elements that are allowed next.
        """
        allowed = self.allowed(state)
        return array_namespace(allowed).ones_like(allowed if self.ways == 1 else allowed[..., 0])  # type: ignore[no-any-return]

    def max_length(self, n: int) -> int:
        """Return the largest number of choices in an answer to an instance of n elements."""
        return n - self.fixed

    def instance_error(self, inputs: Floats) -> str | None:
        """Return why an instance `(n, d)` has no answer, or None if it has one."""
        return None

    def canonicalize(self, inputs: Floats, answers: Sequence[Indices]) -> Sequence[Indices]:
        """Return valid answers to instances `(B, n, d)` in the form that models learn to give."""
        return answers

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """Return the picture of an answer to an instance `(n, d)`."""
        raise InputError(f"problem {self.name} has no picture: its class does not define `draw`")

    def grades(self, n: int, outputs: Indices, in_order: Floats | None) -> Floats:
        """Return the grades `(n,)` that decide which next choices are right; see `Facts.ties`."""
        raise NotImplementedError

    def backwards(self, inputs: Floats) -> Floats:
        """Return instances read backwards; see `Mirror`."""
        raise NotImplementedError

    def answers_backwards(self, inputs: Floats, answers: Sequence[Indices]) -> Sequence[Indices]:
        """Return answers to `backwards(inputs)`; see `Mirror`."""
        raise NotImplementedError

    def improve(self, example: Example, outputs: Indices) -> Indices:
        """Return a valid answer that costs no more than a valid answer; see `Facts.improve`."""
        return outputs

    def rounded_points(self, inputs: Floats) -> Floats | None:
        """Return the points `(n, 2)` whose distances are rounded; see `Facts.rounded_points`."""
        return None

    # ---- Instances and their named arrays.

    def pack(self, **fields: Any) -> Floats:
        """Return instances `(B, n, d)`, given named arrays.

        Args:
            fields: arrays `(B, n)` or `(B, n, numbers)`; shared fields are `(B,)` or
                `(B, numbers)`.
        """
        columns = [_with_width(np.asarray(fields[name], float), 3) for name in self.element_fields]
        batch, n = columns[0].shape[:2]
        for name in self.shared_fields:
            values = _with_width(np.asarray(fields[name], float), 2)
            columns.append(np.broadcast_to(values[:, None], (batch, n, values.shape[1])))
        return np.concatenate(columns, -1)

    def unpack(self, instance: Floats) -> State:
        """Return the named arrays of instances `(B, n, d)`, as `pack` takes them."""
        state, column = {}, 0
        for fields, rows in ((self.element_fields, instance), (self.shared_fields, instance[:, 0])):
            for name, width in fields.items():
                values = rows[..., column : column + width]
                state[name] = values[..., 0] if width == 1 else values
                column += width
        return state

    def from_fields(self, fields: Mapping[str, Any], source: str) -> Floats:
        """Return one instance `(n, d)`, given named lists.

        Raises:
            InputError: a field is missing or has a wrong shape. The message names `source` and the
                field.
        """
        arrays = {}
        n = 0
        widths = {**self.element_fields, **self.shared_fields}
        fields = {**self.optional, **fields}
        for name, width in widths.items():
            if name not in fields:
                raise InputError(f'{source}: expected the key "{name}"')
            values = to_array(fields[name])
            shape: tuple[int, ...] = (width,) if width > 1 else ()
            if name in self.element_fields:
                n = n or (len(values) if values.ndim else 0)
                shape = (n, *shape)
            if values.dtype.kind not in "iuf" or values.shape != shape or not values.size:
                of_element = f"{width} numbers" if width > 1 else "a number"
                rows = f" for each of {n or 'the'} elements" if name in self.element_fields else ""
                raise InputError(f'{source}: "{name}": expected {of_element}{rows}')
            arrays[name] = values[None]
        return self.pack(**arrays)[0]

    def to_fields(self, inputs: Floats) -> dict[str, Any]:
        """Return the named lists of an instance `(n, d)`, as `from_fields` takes them."""
        fields = {name: values[0] for name, values in self.unpack(inputs[None]).items()}
        return {
            name: (values.astype(np.int64) if _are_whole(values) else values).tolist()
            for name, values in fields.items()
            if name not in self.optional or values != self.optional[name]
        }

    def instance_format(self) -> dict[str, Any]:
        """Return how an exported program makes an array of a line of JSON: `ptrnet.export`."""
        return {
            "kind": "fields",
            "elements": dict(self.element_fields),
            "shared": dict(self.shared_fields),
            "optional": dict(self.optional),
        }

    # ---- What ptrnet derives from the methods above.

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, default in (("order", "given"), ("points", "uniform")):
            is_mixed = self.mixes and name == "points" and self.points == MIXED
            if getattr(self, name) != default and not is_mixed:
                raise InputError(f"{name}: problem {self.name} has no such setting")
        if self.ways > 1 and self.overridden("grades"):
            raise InputError(f"problem {self.name}: `grades` can be defined only if ways is 1")

    def _task(self) -> Task:
        return ProblemTask(self)

    def overridden(self, method: str) -> Any:
        """Return a method that the problem's class defines; None if it has only the default."""
        is_default = getattr(type(self), method) is getattr(Problem, method)
        return None if is_default else getattr(self, method)

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of an instance's fields in files."""
        return (*self.element_fields, *self.shared_fields)

    @property
    def num_features(self) -> int:
        return sum(self.element_fields.values()) + sum(self.shared_fields.values())

    @property
    def optional_features(self) -> int:
        """How many of the last numbers an array may lack, because they are 0 by default."""
        last = takewhile(lambda name: self.optional.get(name) == 0, reversed([*self.shared_fields]))
        return sum(self.shared_fields[name] for name in last)

    @property
    def number_names(self) -> tuple[str, ...]:
        fields = {**self.element_fields, **self.shared_fields}
        return tuple(
            name if width == 1 else f"{name} {k}"
            for name, width in fields.items()
            for k in range(1, width + 1)
        )

    def feature_sizes(self) -> tuple[int, int]:
        """How many features `features` returns: of an element, and of the whole instance."""
        n = max(self.min_elements, self.fixed + 2)
        of_elements, of_whole = self.features(
            self.start(self.sample(np.random.default_rng(0), 1, n))
        )
        return of_elements.shape[-1], of_whole.shape[-1]

    def advance(self, state: State, choices: Indices) -> State:
        """Return the state after choices `(B,)`. STAY leaves a row unchanged."""
        moves = choices != STAY
        if not is_numpy_array(choices):  # shapes of tensors must not depend on values
            stepped = self.step(state, array_namespace(choices).where(moves, choices, 0))
            return {name: _merge(moves, stepped[name], rows) for name, rows in state.items()}
        if moves.all():
            return self.step(state, choices)
        if not moves.any():
            return state
        stepped = self.step({name: rows[moves] for name, rows in state.items()}, choices[moves])
        advanced = {name: rows.copy() for name, rows in state.items()}
        for name, rows in stepped.items():
            advanced[name][moves] = rows
        return advanced

    def decisions(self, state: State) -> NDArray[np.bool_]:
        """Return `(B, 1 + n * ways)`, which tokens may come next, including END."""
        allowed = self.allowed(state)
        xp = array_namespace(allowed)
        allowed = xp.reshape(allowed, (allowed.shape[0], -1))
        may_end = ~xp.any(allowed, axis=1) | self.may_end(state)
        decisions: NDArray[np.bool_] = xp.concat([may_end[:, None], allowed], axis=1)
        return decisions

    def index_error(self, outputs: Indices, first: int = 0) -> str | None:
        """Return why no instance has the answer `outputs`; see `Task.answer_error`."""
        chosen = outputs[outputs >= self.fixed] if self.ways > 1 else outputs
        if (chosen < self.fixed).any():
            return f"indices below {self.fixed + first} cannot be chosen"
        return None if self.repeats else duplicate_error(chosen, first)

    def answer_errors(self, inputs: Floats, answers: Sequence[Indices]) -> list[str | None]:
        """Return for each answer the reason why it is invalid, or None if it is valid.

        Args:
            inputs: `(n, d)`, one instance for all answers, or `(B, n, d)`, an instance for each
                answer.
            answers: the answers. We replay all answers together, because `step` takes about as long
                for hundreds of answers as for a single answer.
        """
        n = inputs.shape[-2]
        errors = [self.index_error(answer) for answer in answers]
        longest = self.max_length(n)
        kept = [k for k, error in enumerate(errors) if error is None]
        if not kept:
            return errors
        tokens, lengths = pad(tokens_of([answers[k] for k in kept], self.ways))
        state = self.start(_one_for_each(inputs, answers)[kept])
        for t in range(tokens.shape[1]):
            valid = np.take_along_axis(self.decisions(state), tokens[:, t : t + 1], 1)[:, 0]
            choices = np.where(tokens[:, t] == END, STAY, tokens[:, t] - NUM_SPECIALS)
            for row in np.flatnonzero(~valid & (t < lengths)):
                if errors[kept[row]] is None:
                    error = "ends too early"
                    if choices[row] != STAY:
                        error = f"element {choices[row] // self.ways} is not allowed then"
                    errors[kept[row]] = f"after {t} choices: {error}"
            has_failed = np.array([errors[k] is not None for k in kept])
            state = self.advance(state, np.where(has_failed | (t >= longest), STAY, choices))
        return errors

    def costs(self, inputs: Floats, answers: Sequence[Indices]) -> Floats:
        """Return the cost of each answer, infinite if invalid; arguments as in `answer_errors`."""
        costs = np.full(len(answers), np.inf)
        by_length: dict[int, list[int]] = {}
        for k, error in enumerate(self.answer_errors(inputs, answers)):
            if error is None:
                by_length.setdefault(len(answers[k]), []).append(k)
        instances = _one_for_each(inputs, answers)
        for rows in by_length.values():
            costs[rows] = self.cost(instances[rows], np.stack([answers[k] for k in rows]))
        return costs


def tokens_of(answers: Sequence[Indices], ways: int) -> list[Indices]:
    """Return the sequences of tokens of answers, including END."""
    sequences = []
    for outputs in answers:
        choices = outputs
        if ways > 1:
            before = np.append(0, outputs)[: len(outputs)]  # the answer begins at element 0
            via = (before == 0) & (np.cumsum(before) > 0)
            choices = (2 * outputs + via)[outputs != 0]
        sequences.append(np.append(choices + NUM_SPECIALS, END))
    return sequences


def elements_of(tokens: Indices, ways: int) -> Indices:
    """Return the answer of a sequence of tokens `(m,)`."""
    choices = tokens[tokens >= NUM_SPECIALS] - NUM_SPECIALS
    if ways == 1:
        return choices
    elements, via = np.divmod(choices, 2)
    return np.insert(elements, np.flatnonzero(via), 0)


def _merge(moves: Any, stepped: Any, rows: Any) -> Any:
    """Return the rows of `stepped` where `moves` `(B,)` is True, and those of `rows` elsewhere."""
    if stepped is rows:
        return rows
    xp = array_namespace(rows)
    moves = xp.reshape(moves, (-1, *[1] * (rows.ndim - 1)))
    if rows.dtype == xp.bool:  # onnxruntime has no `where` of booleans
        return (moves & stepped) | (~moves & rows)
    return xp.where(moves, stepped, rows)


def at(rows: Any, index: Any) -> Any:
    """Return `rows[b, index[b]]` `(B, ...)` of arrays or tensors `(B, n, ...)`, given `(B,)`."""
    xp = array_namespace(rows)
    index = xp.reshape(index, (-1, *[1] * (rows.ndim - 1)))
    index = xp.broadcast_to(index, (rows.shape[0], 1, *rows.shape[2:]))
    return xp.take_along_axis(rows, index, axis=1)[:, 0]


def is_at(index: Any, n: int) -> Any:
    """Return `(B, n)` booleans, True at `index` `(B,)` of each row."""
    xp = array_namespace(index)
    return xp.arange(n, device=device(index)) == index[:, None]


def mean(flags: Any) -> Any:
    """Return the share `(B,)` of True in each row of booleans `(B, n)`."""
    xp = array_namespace(flags)
    return xp.mean(xp.astype(flags, xp.float64), axis=1)


def columns(parts: Sequence[Any]) -> Any:
    """Stack features as columns of float64, also booleans and whole numbers."""
    xp = array_namespace(*parts)
    return xp.stack([xp.astype(part, xp.float64) for part in parts], axis=-1)


def to_array(values: Any) -> NDArray[Any]:
    """Convert nested lists to an array, of objects if a value is not a number."""
    try:
        array = np.asarray(None if _has_booleans(values) else values)
        if array.dtype == object and all(type(value) in (int, float) for value in array.flat):
            array = array.astype(float)  # a whole number of more than 64 bits
    except (ValueError, OverflowError):  # lists of several lengths, or a number beyond floats
        return np.asarray(None)
    return array


def _has_booleans(values: Any) -> bool:
    """Whether a boolean is in nested lists. NumPy would read it as 0 or 1."""
    if isinstance(values, list | tuple):
        return bool in {*map(type, values)} or any(map(_has_booleans, values))
    return isinstance(values, bool)


def _one_for_each(inputs: Floats, answers: Sequence[Indices]) -> Floats:
    """Return an instance for each answer, `(B, n, d)`. If `inputs` is one instance, repeat it."""
    return np.broadcast_to(inputs, (len(answers), *inputs.shape[-2:]))


def _are_whole(values: Floats) -> bool:
    """Whether all values are whole numbers that float64 and int64 both hold exactly."""
    return bool((values == np.round(values)).all() and (np.abs(values) < 2**53).all())


def _with_width(values: Floats, ndim: int) -> Floats:
    return values if values.ndim == ndim else values[..., None]


@dataclass(frozen=True)
class ProblemTask(Task):
    """The task of a problem. Its answers are compared by their costs.

    Its constraint is the problem's own: `ptrnet.problems.states`.

    Args:
        problem: the problem, which has the settings.
    """

    problem: Problem
    order: Any = field(init=False)  # the problem's, as `points` is
    points: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", self.problem.order)
        object.__setattr__(self, "points", self.problem.points)
        super().__post_init__()

    @property
    def name(self) -> str:  # type: ignore[override]  # of the problem's class, not of this one
        return self.problem.name

    def _settings(self) -> Problem:
        return self.problem

    @cached_property
    def facts(self) -> Facts:
        problem, backwards = self.problem, self.problem.overridden("backwards")
        return Facts(
            machine=partial(_states_of, problem),
            exact_inputs=True,
            cost_name="cost",
            metric="gap",
            stats={name: getattr(problem, name) for name in problem.stats},
            ties=problem.overridden("grades"),
            mirror=Mirror(backwards, problem.answers_backwards) if backwards else None,
            improve=problem.overridden("improve"),
            scaling={"kind": "none"},
            instance_format=problem.instance_format(),
            in_torch=problem.array_api,
            quick_labels=False,
            has_picture=problem.overridden("draw") is not None,
            stdout_format="jsonl",
            **{name: getattr(problem, name) for name in _FACTS},
        )

    def begin(self, inputs: "Tensor", lengths: "Tensor | None" = None) -> State:
        """Return the state before the first choice. `lengths` is None if nothing is padded."""
        return self._states.begin(inputs, lengths)

    def advance(self, state: State, parents: "Tensor | None", tokens: "Tensor") -> State:
        """Return the next state. If `parents` is None, each prefix is its own parent."""
        return self._states.advance(state, parents, tokens)

    def features(self, state: State) -> "Features":
        """Return what a network reads of each prefix."""
        return self._states.features(state)

    @property
    def _states(self) -> "States":
        return self._machine  # type: ignore[return-value]

    def max_length(self, n: int) -> int:
        return self.problem.max_length(n)

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        return self.problem.sample(rng, count, n)

    def normalize(self, inputs: Floats) -> Floats:
        """Return the instances unchanged, because `features` prepares what the network sees."""
        return inputs

    def canonicalize(self, inputs: Floats, answers: Sequence[Indices]) -> Sequence[Indices]:
        return self.problem.canonicalize(inputs, answers)

    def read_instance(self, row: dict[str, Any], source: str) -> Any:
        if "rounded" in self.problem.optional and row.get("distance", EUCLIDEAN) != EUCLIDEAN:
            raise InputError(
                f'{source}: "distance": is of task tsp; {self.name} has Euclidean distances, and '
                f'those of EUC_2D if "rounded" is 1, got {short(row["distance"])}'
            )
        inputs = self.problem.from_fields(row, source)
        for name in (*self.problem.optional, *self.problem.to_fields(inputs)):
            row.pop(name, None)
        return inputs

    def write_instance(self, example: Example) -> dict[str, Any]:
        return self.problem.to_fields(example.inputs)

    def to_tokens(self, answers: Sequence[Indices]) -> list[Indices]:
        return tokens_of(answers, self.problem.ways)

    def from_tokens(self, tokens: Indices) -> Indices:
        return elements_of(tokens, self.problem.ways)

    def instance_error(self, inputs: Floats) -> str | None:
        column = sum(self.problem.element_fields.values())
        shared = inputs[:, column:]
        if (differs := (shared != shared[0]).any(0)).any():
            k = int(differs.argmax())
            name, values = self.problem.number_names[column + k], np.unique(shared[:, k])
            return (
                f"{name}: expected the same number in all elements, got {values[0]:g} and "
                f"{values[1]:g}"
            )
        return self.problem.instance_error(inputs)

    def answer_error(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        return self.problem.index_error(outputs, first)

    def infeasible(self, inputs: Sequence[Floats], outputs: Sequence[Indices]) -> list[str | None]:
        errors: list[str | None] = [None] * len(inputs)
        for rows, instances in _by_size(inputs):
            found = self.problem.answer_errors(instances, [outputs[k] for k in rows])
            for k, error in zip(rows, found, strict=True):
                errors[k] = error
        return errors

    def costs(self, example: Example, answers: Sequence[Indices]) -> Floats:
        """Return the cost of each answer. Invalid answers have infinite cost."""
        return self.problem.costs(example.inputs, answers)

    def score(self, examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, "Scores"]:
        """Return `cost`, `gap` and `valid` of the answers.

        The gap is `(cost - known) / abs(known)`, where `known` is the cost of the example's answer.
        If the example has no answer, the gap is 0. Cost and gap are NaN for invalid answers. The
        gap is also NaN if `known` is 0 and the cost is not 0.
        """
        answers = list(answers)
        outputs = [
            a if e.outputs is None else e.outputs for e, a in zip(examples, answers, strict=True)
        ]
        of_answers, known = np.empty((2, len(examples)))
        for rows, instances in _by_size([example.inputs for example in examples]):
            of_answers[rows] = self.problem.costs(instances, [answers[k] for k in rows])
            known[rows] = self.problem.costs(instances, [outputs[k] for k in rows])
        valid = np.isfinite(of_answers)
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = (of_answers - known) / np.abs(known)
        gaps = np.where(valid & (of_answers == known), 0.0, gaps)  # also 0 for 0 / 0
        return {
            "cost": np.where(valid, of_answers, np.nan),
            "gap": np.where(np.isfinite(gaps), gaps, np.nan),
            "valid": valid,
        }

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        return self.problem.draw(inputs, outputs)


def _states_of(problem: Problem) -> "States":
    from ptrnet.problems.states import States  # needs torch, so import it only here

    return States(problem)


def _by_size(instances: Sequence[Floats]) -> Iterator[tuple[list[int], Floats]]:
    """For each size, yield the indices of the instances of this size, and the stacked instances."""
    by_size: dict[int, list[int]] = {}
    for row, instance in enumerate(instances):
        by_size.setdefault(len(instance), []).append(row)
    for rows in by_size.values():
        yield rows, np.stack([instances[row] for row in rows])
