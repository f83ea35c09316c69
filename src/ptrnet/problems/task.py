"""The adapter that makes a problem a task like any other."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ptrnet.problems.base import Problem, State, elements_of, tokens_of
from ptrnet.tasks.base import Drawing, Facts, Mirror, Task
from ptrnet.types import Example, Floats, Indices

if TYPE_CHECKING:
    from torch import Tensor

    from ptrnet.metrics.interval import Scores
    from ptrnet.problems.states import Features, States


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
        problem, own = self.problem, type(self.problem)
        is_reversible = own.backwards is not Problem.backwards
        return Facts(
            num_features=problem.num_features,
            machine=partial(_states_of, problem),
            labellers=problem.labellers,
            may_be_unproved=problem.may_be_unproved,
            min_elements=problem.min_elements,
            min_length=problem.min_length,
            repeats=problem.repeats,
            ways=problem.ways,
            fixed=problem.fixed,
            symmetric=problem.symmetric,
            exact_inputs=True,
            largest=problem.largest,
            number_names=problem.number_names,
            cost_name="cost",
            metric="gap",
            stats={name: getattr(problem, name) for name in problem.stats},
            ties=None if own.grades is Problem.grades else problem.grades,
            mirror=Mirror(problem.backwards, problem.answers_backwards) if is_reversible else None,
            improve=None if own.improve is Problem.improve else problem.improve,
            rounded_points=problem.rounded_points,
            field_names=problem.field_names,
            scaling={"kind": "none"},
            instance_format=problem.instance_format(),
            feature_sizes=problem.feature_sizes,
            in_torch=problem.array_api,
            quick_labels=False,
            has_picture=own.draw is not Problem.draw,
            stdout_format="jsonl",
            recipe=problem.recipe,
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
