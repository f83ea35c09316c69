"""Sorting (Chan and Sedoc 2016, 3.1): the indices of numbers in increasing order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ptrnet.geometry import fit_unit_cube
from ptrnet.geometry.predicates import RESOLUTION
from ptrnet.tasks.base import Drawing, Facts, Task, duplicate_error
from ptrnet.types import Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.metrics import Scores


def _settle(inputs: Floats, outputs: Indices) -> Indices:
    """Return the exact order if the answer is sorted up to RESOLUTION, else the answer."""
    exact: Indices = inputs[:, 0].argsort(kind="stable")
    values = fit_unit_cube(inputs)[:, 0]
    is_near = np.abs(values[outputs] - values[exact]).max() < RESOLUTION
    return exact if is_near else outputs


@dataclass(frozen=True)
class Sort(Task):
    """The task `sort`: the indices of numbers in increasing order.

    An instance is `(n, 1)`, an answer `(n,)`. Equal numbers are ordered by their indices. The
    metric is `accuracy`, the share of answers that are entirely right.

    Examples:
        >>> inputs, outputs = ptrnet.label("sort", [[0.7], [0.2], [0.5]])
        >>> outputs
        array([1, 2, 0])
    """

    name: ClassVar[str] = "sort"
    facts: ClassVar[Facts] = Facts(  # type: ignore[misc]
        num_features=1, machine="permutation", labellers=("argsort",), answer="all", settle=_settle
    )

    def max_length(self, n: int) -> int:
        return n

    def answer_error(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        if len(outputs) != n:
            return f"expected all {n} indices, got {len(outputs)}"
        return duplicate_error(outputs, first)

    def score(self, examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, "Scores"]:
        from ptrnet.metrics.ranking import score_sorted

        return score_sorted(examples, answers)

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """Plot the numbers over their positions, connected in the order of the answer."""
        points = np.column_stack([np.arange(len(inputs)), inputs[:, 0]])
        return Drawing(points, [points[outputs]], equal_axes=False)


TASK = Sort
