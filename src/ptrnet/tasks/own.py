"""A user's own task: what its examples are is learned from them.

No labeller knows it, so it is not among the named tasks; a model's folder names it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, isfinite
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from ptrnet.errors import InputError
from ptrnet.tasks.base import Drawing, Task, repeated, setting
from ptrnet.types import Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.constraints import Constraint
    from ptrnet.metrics.interval import Measure

Kind = Literal["permutation", "subset", "free"]
CONSTRAINTS = get_args(Kind)  # each holds the ones before it
LONGEST = 100_000  # indices of an answer
LEAST_SPREAD = 1e-290  # what is spread less is as good as constant
FARTHEST = 1000.0  # spreads from the centre; what is beyond is moved there


@dataclass(frozen=True)
class Own(Task):
    """The task `own`: answers are an order, a subset, or a free sequence with repeats.

    Subsets and free sequences may be empty.
    """

    name: ClassVar[str] = "own"
    labellers: ClassVar[tuple[str, ...]] = ()
    least: ClassVar[int] = 0

    constraint: Literal["permutation", "subset", "free"] = setting("free", "what answers are")
    center: tuple[float, ...] = setting((), "the mean of each feature")
    spread: tuple[float, ...] = setting((), "the standard deviation of each feature")
    longest_answer: int = setting(1, "the most indices of an answer")
    longest_share: float = setting(1.0, "the most indices of an answer, for each element")

    def __post_init__(self) -> None:
        for name in ("center", "spread"):
            try:
                values = tuple(map(float, getattr(self, name)))
            except OverflowError:
                values = ()
            object.__setattr__(self, name, values)
            if not values or len(values) != len(self.center) or not all(map(isfinite, values)):
                raise InputError(f"{name} of task own: expected a finite number for each feature")
        if min(self.spread) < LEAST_SPREAD:
            raise InputError(f"spread of task own: expected numbers of {LEAST_SPREAD} or more")
        for name in ("longest_answer", "longest_share"):
            if not 0 <= getattr(self, name) <= LONGEST:
                raise InputError(f"{name} of task own: expected 0 to {LONGEST}")
        super().__post_init__()

    @property
    def features(self) -> int:  # type: ignore[override]
        """The numbers an element has, d."""
        return len(self.center)

    @property
    def repeats(self) -> bool:
        return self.constraint == "free"

    def scaled(self, inputs: Floats) -> Floats:
        """Instances as the model sees them: each feature in spreads from its centre."""
        # Halved before it is subtracted: the range of 1e308 and -1e308 is no float.
        halves = inputs / 2 - np.array(self.center) / 2
        with np.errstate(over="ignore"):
            return np.clip(halves / (np.array(self.spread) / 2), -FARTHEST, FARTHEST)

    def longest(self, n: int) -> int:
        if self.constraint != "free":
            return n
        return min(max(self.longest_answer, ceil(self.longest_share * n)), LONGEST)

    @property
    def rule(self) -> "Constraint":
        from ptrnet.constraints import Free, Permutation, Subset

        if self.constraint == "permutation":
            return Permutation()
        return Subset(self.least) if self.constraint == "subset" else Free(self.least)

    def complaint(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        if self.constraint == "permutation" and len(outputs) != n:
            return f"expected all {n} indices, got {len(outputs)}"
        return None if self.constraint == "free" else repeated(outputs, first)

    def measure(
        self, examples: Sequence[Example], answers: Iterable[Indices]
    ) -> dict[str, "Measure"]:
        from ptrnet.metrics import sequence

        kinds = {
            "permutation": sequence.measure_orders,
            "subset": sequence.measure_subsets,
            "free": sequence.measure_sequences,
        }
        return kinds[self.constraint](examples, answers)

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """The elements, joined in the order of the answer.

        Of one feature over their positions; of more than two in the plane of the two principal
        components of the instance.
        """
        if self.features == 1:
            points = np.column_stack([np.arange(len(inputs)), inputs[:, 0]])
        elif self.features == 2:
            points = inputs
        else:
            centred = self.scaled(inputs)
            centred = centred - centred.mean(0)
            points = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
            points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
        return Drawing(points, [points[outputs]], equal_axes=self.features > 2)


TASK = Own
