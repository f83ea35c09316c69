"""Sorting (C 3.1): the indices of the numbers in increasing order; equal numbers by index."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ptrnet.tasks.base import Drawing, Task, repeated
from ptrnet.types import Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.constraints import Constraint
    from ptrnet.metrics.interval import Measure


@dataclass(frozen=True)
class Sort(Task):
    """The task `sort`."""

    name: ClassVar[str] = "sort"
    features: ClassVar[int] = 1
    labellers: ClassVar[tuple[str, ...]] = ("argsort",)

    def longest(self, n: int) -> int:
        return n

    @property
    def rule(self) -> "Constraint":
        from ptrnet.constraints import Permutation

        return Permutation()

    def complaint(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        if len(outputs) != n:
            return f"expected all {n} indices, got {len(outputs)}"
        return repeated(outputs, first)

    def measure(
        self, examples: Sequence[Example], answers: Iterable[Indices]
    ) -> dict[str, "Measure"]:
        from ptrnet.metrics.sequence import measure_sorted

        return measure_sorted(examples, answers)

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """The numbers over their positions, joined in the order of the answer."""
        points = np.column_stack([np.arange(len(inputs)), inputs[:, 0]])
        return Drawing(points, [points[outputs]], equal_axes=False)


TASK = Sort
