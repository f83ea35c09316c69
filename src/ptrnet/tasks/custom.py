"""The task of a user's own examples: its settings are inferred from them.

No labeller serves it, so it is not among the named tasks; only a model's folder names it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from ptrnet.errors import InputError
from ptrnet.settings import setting
from ptrnet.tasks.base import Drawing, Task, duplicate_error
from ptrnet.tasks.schema import Schema
from ptrnet.types import Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.constraints import Constraint
    from ptrnet.metrics.interval import Scores

Kind = Literal["permutation", "subset", "free"]
Unknown = Literal["refuse", "ignore"]
CONSTRAINTS = get_args(Kind)  # from the strictest to the loosest: each allows all before it
MAX_LENGTH = 100_000  # indices of an answer
MIN_SPREAD = 1e-290  # a feature of less is as good as constant
MAX_NORMALIZED = 1000.0  # numbers beyond, after scaling, are clipped to it


@dataclass(frozen=True)
class Custom(Task):
    """The task `custom`: answers are an order, a subset, or a free sequence with repeats.

    Subsets and free sequences may be empty. An instance is `(n, d)`, an answer `(m,)`. The metrics
    stand in `docs/own-examples.md`.

    Args:
        constraint: what answers are: `permutation`, an order of all elements; `subset`, each at
            most once; `free`, repeats as well.
        fields: where elements are dictionaries, the fields that are read; see `Schema`.
        categories: of each field the texts that it may be; none where it is a number.
        unknown_category: whether any other text is refused, or ignored: none of the categories.
        center: the mean of each feature, d numbers.
        spread: the standard deviation of each feature, d numbers.
        longest_answer: the most indices of an answer, whatever the size of its instance.
        longest_share: the most indices of an answer for each element.
    """

    name: ClassVar[str] = "custom"
    labellers: ClassVar[tuple[str, ...]] = ()
    min_length: ClassVar[int] = 0

    constraint: Kind = setting("free", "what answers are")
    fields: tuple[str, ...] = setting((), "the fields that are read of elements with names")
    categories: tuple[tuple[str, ...], ...] = setting((), "of each field its texts")
    unknown_category: Unknown = setting("refuse", "what other texts are")
    center: tuple[float, ...] = setting((), "the mean of each feature")
    spread: tuple[float, ...] = setting((), "the standard deviation of each feature", ge=MIN_SPREAD)
    longest_answer: int = setting(1, "the most indices of an answer", ge=0, le=MAX_LENGTH)
    longest_share: float = setting(
        1.0, "the most indices of an answer, for each element", ge=0, le=MAX_LENGTH
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("center", "spread"):
            if len(getattr(self, name)) != max(len(self.center), 1):
                raise InputError(f"{name}: expected a number for each feature")
        if len(self.fields) != len(self.categories) or (
            self.schema is not None and len(self.schema.is_category) != len(self.center)
        ):
            raise InputError("categories: expected a list of texts for each field")

    @property
    def schema(self) -> Schema | None:
        if not self.fields:
            return None
        return Schema(self.fields, self.categories, self.unknown_category == "ignore")

    @property
    def num_features(self) -> int:
        return len(self.center)

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        if self.schema is not None:
            raise InputError("no instances can be drawn of elements with fields: name a FILE")
        return super().sample(rng, count, n)

    @property
    def repeats(self) -> bool:
        return self.constraint == "free"

    def normalize(self, inputs: Floats) -> Floats:
        """Instances `(..., n, d)` as the model reads them: each feature standardized."""
        # Halved before it is subtracted: the range of 1e308 and -1e308 is no float.
        half_deviations = inputs / 2 - np.array(self.center) / 2
        with np.errstate(over="ignore"):
            standardized = half_deviations / (np.array(self.spread) / 2)
            return np.clip(standardized, -MAX_NORMALIZED, MAX_NORMALIZED)

    def max_length(self, n: int) -> int:
        if self.constraint != "free":
            return n
        return min(max(self.longest_answer, ceil(self.longest_share * n)), MAX_LENGTH)

    def build_constraint(self) -> "Constraint":
        from ptrnet.constraints import Free, Permutation, Subset

        if self.constraint == "permutation":
            return Permutation()
        return Subset(self.min_length) if self.constraint == "subset" else Free(self.min_length)

    def answer_error(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        if self.constraint == "permutation" and len(outputs) != n:
            return f"expected all {n} indices, got {len(outputs)}"
        return None if self.constraint == "free" else duplicate_error(outputs, first)

    def score(self, examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, "Scores"]:
        from ptrnet.metrics import sequence

        scores = {
            "permutation": sequence.score_orders,
            "subset": sequence.score_subsets,
            "free": sequence.score_sequences,
        }
        return scores[self.constraint](examples, answers)

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """The elements, joined in the order of the answer.

        Elements of one feature stand over their positions in the instance; those of more than two
        are projected on the first two principal components of the instance.
        """
        if self.num_features == 1:
            points = np.column_stack([np.arange(len(inputs)), inputs[:, 0]])
        elif self.num_features == 2:
            points = inputs
        else:
            centred = self.normalize(inputs)
            centred = centred - centred.mean(0)
            points = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
            points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
        return Drawing(points, [points[outputs]], equal_axes=self.num_features > 2)


TASK = Custom
