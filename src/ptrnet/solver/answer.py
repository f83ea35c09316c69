"""An answer that knows itself: the indices, with what a model can say of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np

from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices


@dataclass(frozen=True, eq=False)
class Answer:
    """A model's answer to one instance. NumPy takes it for its indices: `points[answer]` works.

    Args:
        inputs: `(n, d)`, the instance.
        outputs: `(m,)` 0-based indices; of triangles `(t, 3)`.
        log_prob: of the model's answer, before nearly equal elements were told apart exactly; of
            the likeliest view where there are several.
        cost: by the task, less is better: a tour's length; None where the task has no costs.
        decoder: its name.
        seconds: that the answer took; its share of the time, where many were answered together.
        warnings: how the instance is unlike all that the model was trained on; none if it is not.
        task: of the model.
        elements: those of the instance in the order of the answer, as they came: dictionaries with
            all of their fields, or rows of `inputs`.
        example: the instance with its answer, and what else is known of it: names, distance.
    """

    inputs: Floats = field(repr=False)
    outputs: Indices
    log_prob: float
    cost: float | None
    decoder: str
    seconds: float
    warnings: tuple[str, ...]
    task: Task = field(repr=False)
    elements: Sequence[Any] = field(repr=False)
    example: Example = field(repr=False)

    @property
    def is_inside_training(self) -> bool:
        """Whether size and features are like those of the training."""
        return not self.warnings

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Indices:
        array = self.outputs if dtype is None else self.outputs.astype(dtype)
        return array.copy() if copy else array

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, index: Any) -> Any:
        return self.outputs[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.outputs)

    def plot(self, ax: Any = None) -> Any:
        """Draws the answer, and the true one, dashed, where it is better.

        Args:
            ax: matplotlib's axes; those of a new figure when None.

        Returns:
            The axes.

        Raises:
            InputError: a coordinate that cannot be drawn.
            MissingExtraError: matplotlib is not installed.
        """
        from ptrnet.plots.answer import draw_answered
        from ptrnet.plots.figure import axes_or_new

        ax = axes_or_new(ax)
        draw_answered(ax, self.task, self.example, None)
        return ax

    def _repr_png_(self) -> bytes | None:
        """The picture that a notebook shows; None where matplotlib is missing."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            return None
        figure, stream = Figure(figsize=(5, 5), layout="constrained"), BytesIO()
        self.plot(figure.add_subplot())
        figure.savefig(stream, format="png", dpi=110)
        return stream.getvalue()


def cost_of(task: Task, answered: Example) -> float | None:
    """The cost of an example's answer; None where the task has none."""
    assert answered.outputs is not None
    costs = task.costs(answered, [answered.outputs])
    return None if costs is None else float(np.asarray(costs)[0])


def finite_cost(task: Task, answered: Example) -> float | None:
    """The cost as JSON can hold it: None where it is not finite, as of what is no answer."""
    cost = cost_of(task, answered)
    return cost if cost is not None and math.isfinite(cost) else None
