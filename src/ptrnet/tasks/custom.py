"""The task of a user's own examples. Its settings are inferred from the examples.

The task has no labeller, and `tasks.names()` does not list it. Its name, `custom`, occurs only in
files of models.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, get_args

import numpy as np

from ptrnet.errors import InputError, unknown
from ptrnet.settings import check, setting
from ptrnet.tasks.base import Drawing, Facts, Task, duplicate_error
from ptrnet.tasks.schema import (
    NO_LAYOUT,
    Layout,
    Missing,
    Schema,
    Unknown,
    interaction,
    with_context,
    without_context,
)
from ptrnet.types import Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.metrics import Scores

Kind = Literal["permutation", "subset", "sequence", "set", "choice", "grades"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# Values of the option `constraint`, another way to give the kind.
CONSTRAINTS: dict[str, Kind] = {
    "permutation": "permutation",
    "subset": "subset",
    "free": "sequence",
}
METRICS: dict[Kind, str] = {
    "permutation": "kendall_tau",
    "subset": "f1",
    "sequence": "in_place",
    "set": "f1",
    "choice": "accuracy",
    "grades": "ndcg@10",
}
MACHINES = {"permutation": "permutation", "grades": "permutation", "sequence": "free"}
MAX_LENGTH = 100_000  # the maximum number of indices in an answer of the kind `sequence`
MIN_SPREAD = 1e-290  # a feature with a smaller standard deviation counts as constant
MAX_NORMALIZED = 1000.0  # largest absolute value of a standardized feature


@dataclass(frozen=True)
class Custom(Task):
    """The task `custom`. The setting `kind` is the kind of all its answers.

    An instance is `(n, d)`, an answer `(m,)`. These are the kinds:

    - `permutation`: an order of all elements.
    - `subset`: some elements in an order that matters, each at most once.
    - `sequence`: elements in an order that matters, with repetition.
    - `set`: some elements, in any order.
    - `choice`: one element.
    - `grades`: an order of all elements, highest grade first. Equal grades may come in any order.

    Subsets, sequences and sets may be empty. `docs/own-examples.md` describes the metrics.

    Args:
        kind: the kind of the answers.
        fields: the fields that the model reads, if elements are dictionaries. See `Schema`.
        categories: for each field, the texts that the field may have; empty for a number.
        filled: the fields that may lack a number. The field's mean replaces a missing number, and
            one more feature marks missing numbers.
        common: for each field, the numbers that many elements have; empty if no field has any. One
            more feature marks each of these numbers.
        context: the fields that have one value in all elements of an instance.
        increasing: the fields whose numbers may only make an element more probable if they rise.
            `docs/own-examples.md` says what that means for each kind. Such a field is a number that
            differs within an instance.
        decreasing: the fields whose numbers may only make an element less probable if they rise.
        unknown: whether texts that are not in `categories`, and missing numbers of fields that are
            not in `filled`, are treated as `missing`, or are errors (`refuse`).
        missing: whether missing values may be replaced (`fill`), or are errors (`refuse`).
        center: the mean of each feature, d numbers; 0 for features that mark a category or a
            number.
        spread: the standard deviation of each feature, d numbers; 1 for constant features, and for
            features that mark a category or a number.
        lowest: the smallest value of each feature, d numbers; empty if these are unknown.
        longest_answer: a sequence may have this many indices, even if the instance is small.
        at: the k of the metrics `ndcg@k` (grades) and `top@k` (choices); empty: 1, 5 and 10 for
            `ndcg`, 3 and 5 for `top`.
        gains: the gain of grade 0, 1, 2, ... in `ndcg`, none less than the one before; empty:
            `2^grade - 1`. A training whose loss is "gains" learns these gains.
        irrelevant: what an instance without a relevant element counts in `ndcg`, `mrr` and `map`:
            "1", "0", or "out" (it is left out).
        longest_share: a sequence may also have this many indices for each element of the instance.
            The larger of these two limits applies, but never more than `MAX_LENGTH` indices.
        layout: how the rows of tables hold the instances.
    """

    name: ClassVar[str] = "custom"

    kind: Kind = setting("sequence", "the kind of the answers")
    fields: tuple[str, ...] = setting((), "the fields that the model reads")
    categories: tuple[tuple[str, ...], ...] = setting((), "the texts of each field")
    filled: tuple[str, ...] = setting((), "the fields whose numbers may be missing")
    common: tuple[tuple[float, ...], ...] = setting((), "the common numbers of each field")
    context: tuple[str, ...] = setting((), "the fields that all elements of an instance share")
    increasing: tuple[str, ...] = setting((), "the fields that raise probabilities")
    decreasing: tuple[str, ...] = setting((), "the fields that lower probabilities")
    unknown: Unknown = setting("missing", "what to do with values that no example had")
    missing: Missing = setting("fill", "whether to replace missing values")
    center: tuple[float, ...] = setting((), "the mean of each feature")
    spread: tuple[float, ...] = setting((), "the standard deviation of each feature", ge=MIN_SPREAD)
    lowest: tuple[float, ...] = setting((), "the smallest value of each feature")
    at: tuple[int, ...] = setting((), "the k of ndcg@k and top@k", ge=1)
    gains: tuple[float, ...] = setting((), "the gain of each grade in ndcg", ge=0)
    irrelevant: Literal["1", "0", "out"] = setting("1", "what sets without relevant elements count")
    longest_answer: int = setting(1, "the most indices of an answer", ge=0, le=MAX_LENGTH)
    longest_share: float = setting(
        1.0, "the most indices of an answer, per element", ge=0, le=MAX_LENGTH
    )
    layout: Layout = setting(NO_LAYOUT, "how the rows of tables hold the instances")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("center", "spread"):
            if len(getattr(self, name)) != max(len(self.center), 1):
                raise InputError(f"{name}: expected a number for each feature")
        if any(after < before for before, after in pairwise(self.gains)):
            raise InputError("gains: expected a gain for each grade, none less than the one before")
        if self.gains and self.gains[-1] == 0:
            raise InputError("gains: expected a gain above 0")
        if len(self.common) not in (0, len(self.fields)):
            raise InputError("common: expected a list of numbers for each field")
        if len(self.fields) != len(self.categories) or (
            self.fields and len(self._schema_without_fills.is_category) != len(self.center)
        ):
            raise InputError("categories: expected a list of texts for each field")
        self._check_signs()

    def _check_signs(self) -> None:
        """Raise InputError if a field with a sign is not a number of single elements."""
        categories = {
            field for field, texts in zip(self.fields, self.categories, strict=True) if texts
        }
        for key, others in (("increasing", self.decreasing), ("decreasing", self.increasing)):
            for field in getattr(self, key):
                if field not in self.fields:
                    option = f"field in {key} (expected one that the model reads):"
                    raise unknown(option, field, self.fields)
                for fields, reason in (
                    (categories, "its values are categories, which have no order"),
                    (self.context, "all elements of a set have the same, so it favours none"),
                    (others, "it is both increasing and decreasing"),
                ):
                    if field in fields:
                        raise InputError(f'{key}: "{field}" cannot have a sign: {reason}')

    @property
    def _schema_without_fills(self) -> Schema:
        return Schema(
            self.fields,
            self.categories,
            self.unknown,
            self.missing,
            tuple((field, 0.0) for field in self.filled),
            self.context,
            self.increasing,
            self.decreasing,
            self.common,
        )

    @cached_property
    def facts(self) -> Facts:
        is_one = self.kind == "choice"
        return Facts(
            num_features=len(self.center),
            machine=MACHINES.get(self.kind, "subset"),
            min_length=int(is_one),
            answer="all" if self.is_ranking else "one" if is_one else "any",
            repeats=self.kind == "sequence",
            schema=self._schema(),
            layout=self.layout,
            relative_range=self._relative_range(),
            kind=self.kind,
            cutoffs=self.at,
            gains=self.gains,
            metric=self._metric(),
            scaling={
                "kind": "standardize",
                "center": self.center,
                "spread": self.spread,
                "clip": MAX_NORMALIZED,
            },
            token_limit=self._token_limit(),
            ties=self._ties if self.kind in ("set", "grades") else None,
            free_settings=("at", "gains", "irrelevant"),
        )

    def _metric(self) -> str:
        """Return the main metric. Without 10 among the k of `ndcg@k`, it is that of the last k."""
        metric = METRICS[self.kind]
        is_lost = self.kind == "grades" and self.at and 10 not in self.at
        return f"ndcg@{self.at[-1]}" if is_lost else metric

    def _token_limit(self) -> dict[str, float] | None:
        if self.kind != "sequence":
            return None
        rule = {"per_element": self.longest_share, "plus": 0, "least": self.longest_answer}
        return {**rule, "most": MAX_LENGTH}

    def _schema(self) -> Schema | None:
        if not self.fields:
            return None
        schema = self._schema_without_fills
        starts = [part.start for part in schema.slices]
        means = {field: self.center[k] for field, k in zip(self.fields, starts, strict=True)}
        fills = tuple((field, means[field]) for field in self.filled)
        # An interaction is 0 in the rows of all other alternatives, so its mean is too small.
        names = self.layout.names
        for name, own in product(self.layout.interact, names[1:]):
            if (field := interaction(name, own)) in means:
                means[field] = means.get(name, len(names) * means[field])
        is_strict = "refuse" in (self.unknown, self.missing)
        return replace(
            schema,
            fills=fills,
            means=() if is_strict else tuple(means.values()),
        )

    def read_instance(self, row: dict[str, Any], source: str) -> Any:
        return with_context(super().read_instance(row, source), row.get("context"), source)

    def write_instance(self, example: Example) -> dict[str, Any]:
        if not example.elements:
            return super().write_instance(example)
        return {"inputs": without_context(example.elements, example.extra.get("context"))}

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        if self.facts.schema is not None:
            raise InputError("elements with fields cannot be drawn at random: name a FILE")
        return super().sample(rng, count, n)

    def normalize(self, inputs: Floats) -> Floats:
        """Return instances `(..., n, d)` as the model reads them: each feature standardized."""
        # Halve before subtracting, because the difference of 1e308 and -1e308 is not finite.
        half_center, half_spread = self._half_scaling
        with np.errstate(over="ignore"):
            standardized = (inputs / 2 - half_center) / half_spread
            return np.clip(standardized, -MAX_NORMALIZED, MAX_NORMALIZED)

    @cached_property
    def _half_scaling(self) -> tuple[Floats, Floats]:
        return np.array(self.center) / 2, np.array(self.spread) / 2

    def _relative_range(self) -> tuple[Floats, Floats]:
        center, spread = np.array(self.center), np.array(self.spread)
        lowest = np.array(self.lowest) if self.lowest else np.zeros(len(center))
        is_positive = (lowest > 0) & (center > 0)  # False for categories, whose center is 0
        mean = np.where(is_positive, center, 1)
        return np.where(is_positive, spread / mean, 0), np.where(is_positive, lowest / mean, 1)

    def max_length(self, n: int) -> int:
        if self.kind == "choice":
            return 1
        if self.kind != "sequence":
            return n
        return min(max(self.longest_answer, ceil(self.longest_share * n)), MAX_LENGTH)

    @property
    def is_ranking(self) -> bool:
        """Whether each answer contains all elements."""
        return self.kind in ("permutation", "grades")

    def answer_error(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        if self.is_ranking and len(outputs) != n:
            return f"expected all {n} indices, got {len(outputs)}"
        if self.kind == "choice" and len(outputs) != 1:
            return f"expected one index, got {len(outputs)}"
        return None if self.facts.repeats else duplicate_error(outputs, first)

    def _ties(self, n: int, outputs: Indices, in_order: Floats | None) -> Floats:
        grades = np.zeros(n)
        if self.kind == "set":
            grades[outputs] = 1
        else:  # an order without ties gets the grades n, n - 1, ..., 1
            grades[outputs] = np.arange(n, 0, -1) if in_order is None else in_order
        return grades

    def score(self, examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, "Scores"]:
        from ptrnet.metrics import ranking

        if self.kind == "grades":
            irrelevant = np.nan if self.irrelevant == "out" else float(self.irrelevant)
            cutoffs = self.at or ranking.CUTOFFS
            return ranking.score_grades(examples, answers, cutoffs, self.gains, irrelevant)
        scores = {
            "permutation": ranking.score_permutations,
            "subset": ranking.score_subsets,
            "sequence": ranking.score_sequences,
            "set": ranking.score_sets,
            "choice": ranking.score_choices,
        }
        return scores[self.kind](examples, answers)

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """Draw the elements, joined in the order of the answer.

        Elements with one feature are drawn above their positions in the instance. Elements with
        more than two features are projected on the first two principal components of the instance.
        """
        if self.facts.num_features == 1:
            points = np.column_stack([np.arange(len(inputs)), inputs[:, 0]])
        elif self.facts.num_features == 2:
            points = inputs
        else:
            centred = self.normalize(inputs)
            centred = centred - centred.mean(0)
            points = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
            points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
        return Drawing(points, [points[outputs]], equal_axes=self.facts.num_features > 2)


def own_task(task: Task) -> Task:
    """Return the task of a user's own examples. Raises InputError for any other task."""
    if not task.facts.kind:
        raise InputError(f"expected a model of your own examples, got one of task {task.name}")
    return task


def kind_of(kind: str | None, constraint: str | None = None) -> Kind | None:
    """Return the kind that a user gave as `kind` or `constraint`; None if the user gave neither.

    Raises:
        InputError: a name is unknown, or the user gave both.
    """
    if kind is not None and constraint is not None:
        raise InputError(f"kind and constraint are the same option: omit constraint {constraint}")
    if constraint is not None and constraint not in CONSTRAINTS:
        raise unknown("constraint", constraint, CONSTRAINTS)
    if kind is not None:
        kind = check("kind", kind, Kind)
    return cast("Kind | None", CONSTRAINTS[constraint] if constraint is not None else kind)


TASK = Custom
