"""Sums of probabilities over sets, as they are and in draws, from which intervals are made."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from ptrnet.data.question import Question
from ptrnet.errors import InputError, unknown
from ptrnet.models.base import PointerModel
from ptrnet.models.conditional_logit import ConditionalLogit
from ptrnet.models.parts.spaces import Spaces
from ptrnet.models.parts.trees import Trees
from ptrnet.progress import track
from ptrnet.solver.explain import feature_names, field_columns
from ptrnet.solver.scenario import Mask, is_outside
from ptrnet.solver.scoring import element_probabilities, log_sums
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import is_missing
from ptrnet.types import Dataset, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.solver import Solver

SMALL = 0.1  # share of a standard error by which coefficients change in `_variants`
STEP, WIDE_STEP = 0.01, 0.1  # the default size of differences; see `Question.step`
BLOCK = 64  # draws that are multiplied at once
MAX_SEGMENTS = 100


class Totals:
    """Sums of probabilities over the sets, of the model and in each draw.

    A draw has a resampled set of groups (or sets), and a variant of the model. Sums are `(R + 1,
    ...)`: those of the model and the sets as they are, then those of R draws.

    Args:
        solver: the model, which has to be one of choices.
        data: the sets.
        frame: the rows of the sets, by `frame_of`.
        question: the settings of the question; R is `question.draws`.
        activity: the label of a progress bar.
    """

    def __init__(
        self,
        solver: "Solver",
        data: Dataset,
        frame: Any,
        question: Question,
        activity: str,
    ) -> None:
        self.task, self.data, self.frame = solver.task, data, frame
        self.question, self.activity = question, activity
        self.owners = np.repeat(np.arange(len(data)), data.sizes)  # (n,), the set of each row
        self.place = np.arange(len(self.owners)) - data.starts[:-1][self.owners]
        self.labels, self.label = self._alternatives()
        self.segment_names, self.of_segment = self._segments()
        self.models, mix, self.notes = _variants(solver.model, solver.task, solver.trained)
        is_staircase = any(isinstance(part, Trees | Spaces) for part in solver.model.modules())
        self.step = question.step or (WIDE_STEP if is_staircase else STEP)
        self.weights = np.ones(len(data)) if data.weights is None else data.weights
        if not self.weights.any():
            raise InputError("simulate: expected a set whose weight is above 0")
        groups = np.arange(len(data)) if data.groups is None else data.groups
        self.group = np.unique(groups, return_inverse=True)[1]
        rng, count = np.random.default_rng(question.seed), int(self.group.max()) + 1
        self.counts = np.ones((question.draws + 1, count), np.int16)
        for row in self.counts[1:]:
            row[:] = np.bincount(rng.integers(count, size=count), minlength=count)
        self.mixing = np.vstack([np.eye(1, len(self.models)), mix(rng, question.draws)])
        every = np.ones(len(self.owners), bool)
        empty = [np.zeros(len(every)) for _ in self.models]
        self.before = self._probabilities(data.elements, every, every, empty)

    def _alternatives(self) -> tuple[list[str], Indices]:
        """Return the names of the alternatives, and the number `(n,)` of each row's one."""
        labels, label = [f"{k + 1}" for k in range(self.place.max() + 1)], self.place
        if self.question.by:
            labels, label = _labels(self.frame, self.question.by, "by")
            if (self.place > 0).any() and (label == self._first(label)).all():
                raise InputError(
                    f'by: "{self.question.by}" is the same in all rows of each set: expected a '
                    "column that names the alternatives; for a table of each part of the sets, use "
                    "segment"
                )
        outside = self.task.facts.layout.outside
        if self.question.by == outside:
            return labels, label
        label = np.where(is_outside(self.frame, self.task), len(labels), label)
        used, label = np.unique(label, return_inverse=True)
        return [[*labels, outside][k] for k in used], label

    def _segments(self) -> tuple[list[str], Indices]:
        """Return the names of the segments, and the number `(B,)` of each set's one."""
        if not self.question.segment:
            return ["all"], np.zeros(len(self.data), np.int64)
        names, number = _labels(self.frame, self.question.segment, "segment")
        differs = number != self._first(number)
        if differs.any():
            source = self.data.column("source")[self.owners[int(differs.argmax())]]
            raise InputError(
                f'{source}: segment: "{self.question.segment}" differs between the rows of the set'
            )
        if len(names) > MAX_SEGMENTS:
            raise InputError(
                f'segment: "{self.question.segment}" has {len(names):,} values, expected at most '
                f"{MAX_SEGMENTS}"
            )
        return names, number[self.data.starts[:-1]]

    def _first(self, numbers: Indices) -> Indices:
        """Return for each row the number of the first row in its set."""
        return numbers[self.data.starts[:-1]][self.owners]

    def probabilities(self, elements: Floats, is_kept: Mask | None = None) -> list[Floats]:
        """Return each model's probabilities `(n,)` of other elements; 0 for those not kept."""
        every = np.ones(len(elements), bool)
        is_kept = every if is_kept is None else is_kept
        is_other = (elements != self.data.elements).any(1) | ~is_kept
        return self._probabilities(elements, is_kept, is_other, self.before)

    def _probabilities(
        self, elements: Floats, is_kept: Mask, is_other: Mask, known: list[Floats]
    ) -> list[Floats]:
        """Compute the probabilities of sets with other rows. Those of all others are `known`."""
        owners, count = self.owners, len(self.data)
        affected = np.unique(owners[is_other])
        in_affected = np.isin(owners, affected)
        rows = in_affected & is_kept
        sizes = np.bincount(owners[rows], minlength=count)[affected]
        if not sizes.all():
            place = self.data.column("source")[affected[int(sizes.argmin())]]
            raise InputError(f"{place}: drop: no element of the set would be left")
        data = Dataset(elements[rows], np.concatenate([[0], sizes.cumsum()]))
        found = []
        for model, of_model in zip(self.models, known, strict=True):
            new = of_model.copy()
            new[in_affected] = 0
            if len(affected):
                new[rows] = np.concatenate(element_probabilities(model, self.task, data))
            found.append(new)
        return found

    @property
    def logits(self) -> list[ConditionalLogit]:
        """The models if all of them are logits; otherwise empty."""
        found = [model for model in self.models if isinstance(model, ConditionalLogit)]
        return found if len(found) == len(self.models) else []

    def log_sums(self, elements: Floats, is_kept: Mask) -> list[Floats]:
        """Return the log-sums `(B,)` of other elements for each of the logits."""
        sizes = np.bincount(self.owners[is_kept], minlength=len(self.data))
        data = Dataset(elements[is_kept], np.concatenate([[0], sizes.cumsum()]))
        return [log_sums(model, self.task, data) for model in self.logits]

    def by_label(self, values: Sequence[Floats]) -> Floats:
        """Sum values `(n,)` of each model's rows. Return `(R + 1, segments, labels)`."""
        count = len(self.labels)
        cells = self.of_segment[self.owners] * count + self.label
        weights = self.weights[self.owners]
        return self._sums([v * weights for v in values], self.group[self.owners], cells, count)

    def by_segment(self, values: Sequence[Floats]) -> Floats:
        """Sum values `(B,)` of each model's sets. Return `(R + 1, segments)`."""
        values = [v * self.weights for v in values]
        return self._sums(values, self.group, self.of_segment, 1)[..., 0]

    def _sums(
        self, values: Sequence[Floats], groups: Indices, cells: Indices, count: int
    ) -> Floats:
        num_cells, num_groups = len(self.segment_names) * count, self.counts.shape[1]
        sums = np.zeros((len(self.counts), num_cells))
        for mixing, of_model in zip(self.mixing.T, values, strict=True):
            of_groups = np.bincount(groups * num_cells + cells, of_model, num_groups * num_cells)
            of_groups = of_groups.reshape(num_groups, num_cells)
            for first in range(0, len(sums), BLOCK):
                part = slice(first, first + BLOCK)
                sums[part] += mixing[part, None] * (self.counts[part].astype(float) @ of_groups)
        of_segments: Floats = sums.reshape(len(sums), -1, count)
        if not self.question.segment:
            return of_segments
        return np.concatenate([of_segments.sum(1, keepdims=True), of_segments], 1)

    def of_sets(self, values: Floats) -> Floats:
        """Return the sums `(B,)` of the rows' values in each set."""
        return np.bincount(self.owners, values, len(self.data)).astype(float)

    def segments(self) -> list[tuple[str, int]]:
        """Return the name and the number of each segment in sums, the whole first."""
        names = [*["all"] * bool(self.question.segment), *self.segment_names]
        return [(name, k) for k, name in enumerate(names)]

    def head(self, segment: str) -> dict[str, Any]:
        """Return the first cell of a row, if there are segments."""
        return {self.question.segment: segment} if self.question.segment else {}

    def moved(self, field: str, rows: Mask, by: Floats) -> Iterator[tuple[Floats, float]]:
        """Yield elements with a field that is larger and smaller by `(n,)` in some rows.

        Each comes with its sign. Features that mark missing or common numbers stay as they are.
        """
        first = field_columns(self.task)[field].start
        for sign in (1.0, -1.0):
            elements = np.array(self.data.elements)
            elements[rows, first] += sign * by[rows]
            yield elements, sign

    def has(self, field: str) -> Mask:
        """Return `(n,)`: which rows have a number in a field."""
        return np.array([not is_missing(v) for v in self.frame[field].tolist()])

    def own_slopes(self, field: str, rows: Mask) -> list[Floats]:
        """Return for each model the derivatives `(n,)` of p_j with respect to a field of row j."""
        spread = self.task.facts.scaling["spread"][field_columns(self.task)[field].start]
        size = self.step * spread
        slopes = [np.zeros(len(rows)) for _ in self.models]
        for k in track(range(self.place.max() + 1), self.activity, int(self.place.max()) + 1):
            here = rows & (self.place == k)
            for elements, sign in self.moved(field, here, np.full(len(rows), size)):
                for slope, p in zip(slopes, self.probabilities(elements), strict=True):
                    slope[here] += sign * p[here] / (2 * size)
        return slopes


def _labels(frame: Any, column: str, option: str) -> tuple[list[str], Indices]:
    """Return the texts of a column in the order of their first rows, and the number of each row."""
    import pandas as pd

    if column not in frame:
        raise unknown(f"column in {option}", column, map(str, frame))
    texts = frame[column].map(lambda value: "(missing)" if is_missing(value) else _text(value))
    codes, labels = pd.factorize(texts)
    return [str(label) for label in labels], np.asarray(codes, np.int64)


def _text(value: Any) -> str:
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


def _variants(
    model: PointerModel, task: Task, trained: dict[str, Any]
) -> tuple[list[PointerModel], Callable[[np.random.Generator, int], Floats], list[str]]:
    """Return the model and its variants, how draws mix their sums, and a note.

    - An ensemble: its K networks. Each was trained without a K-th of the examples, so the
      covariance of a sum is that of the jackknife, `(K - 1) / K sum_k d_k d_k'` with the deviation
      `d_k` of network k from their mean. Draws have this covariance and the distribution of
      Student's t with K - 1 degrees of freedom.
    - A conditional or nested logit: the logit with other parameters, moved along each principal
      axis of their errors. Draws have the sums that parameters drawn from their normal distribution
      would have, to first order (Krinsky and Robb 1986).
    - Other models have no variants.
    """
    networks, known = model.networks(), trained.get("coefficients", {})
    if len(networks) > 1:
        count = len(networks)
        note = (
            f"Intervals include the differences between the {count} networks (jackknife) and "
            "resampled groups or sets."
        )

        def mix(rng: np.random.Generator, draws: int) -> Floats:
            z = rng.normal(size=(draws, count))
            scale = np.sqrt((count - 1) / count * (count - 1) / rng.chisquare(count - 1, draws))
            z = scale[:, None] * (z - z.mean(1, keepdims=True))
            return np.hstack([np.ones((draws, 1)), z])

        return [model, *networks], mix, [note]
    if isinstance(model, ConditionalLogit) and known.get("covariance"):
        # A parameter is known by its name and by whether it is that of a nest.
        nests = [(f"nest {name}", True) for name in model.marks_of_nests()]
        parameters = [*((name, False) for name in feature_names(task)), *nests]
        of_rows = [(row["name"], "null" in row) for row in known["rows"]]
        # The model does not read the positions of clicks, which also have coefficients.
        rows = [k for k, row in enumerate(of_rows) if row in parameters]
        places = [parameters.index(of_rows[k]) for k in rows]
        covariance = np.array(known["covariance"])[np.ix_(rows, rows)]
        values, vectors = np.linalg.eigh(covariance)
        roots = np.sqrt(np.maximum(values, 0)) * vectors
        spread = np.append(task.facts.scaling["spread"], np.ones(len(nests)))
        units = SMALL * spread[places]
        moved = [_with_parameters(model, places, units * root) for root in roots.T]
        kind = known["errors"]
        note = f"Intervals include the {kind} errors of coefficients, and resampled groups or sets."

        def mix(rng: np.random.Generator, draws: int) -> Floats:
            z = rng.normal(size=(draws, len(moved))) / SMALL
            return np.hstack([1 - z.sum(1, keepdims=True), z])

        return [model, *moved], mix, [note]
    note = (
        "Intervals come from resampled groups or sets alone: a single network does not know how "
        "uncertain it is. Train with --ensemble 5 to include that."
    )
    return [model], lambda rng, draws: np.ones((draws, 1)), [note]


@torch.no_grad()
def _with_parameters(
    model: ConditionalLogit, places: Sequence[int], moves: Floats
) -> ConditionalLogit:
    """Return a model with other parameters: the weights of features, then those of nests."""
    moved = copy.deepcopy(model)
    every = parameters_to_vector(moved.parameters())
    every[places] += torch.from_numpy(moves).to(every)
    vector_to_parameters(every, moved.parameters())
    return moved
