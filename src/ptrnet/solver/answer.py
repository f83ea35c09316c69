"""An answer together with its metadata: log-probability, cost, time and warnings."""

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
    """A model's answer to one instance, from `Solver.answer`.

    NumPy treats it as its indices: `points[answer]` works.

    Args:
        inputs: the instance `(n, d)`.
        outputs: 0-based indices `(m,)`. Triangles are `(t, 3)`.
        log_prob: the log-probability of the answer that the model gave. If elements are nearly
            equal, an exact rule of the task may have corrected this answer afterwards. If the
            model answered several views of the instance (`augment`), the log-probability is
            for the view whose answer was chosen.
        cost: the cost by the task, such as a tour's length. Less is better. None if the task has no
            cost.
        decoder: the name of the decoder.
        seconds: the time that the answer took. If several instances were answered together, each
            answer has an equal share of the time.
        warnings: one message for each way in which the instance is out of distribution.
        task: the task of the model.
        elements: the elements of the answer in its order, as they were given: dictionaries with all
            of their fields, or rows of `inputs`. For triangles, lists of three elements.
        example: the instance with its answer, and with names and distance if it has them.

    Examples:
        >>> points = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
        >>> answer = ptrnet.load("hull").answer(points)
        >>> answer.outputs, answer.is_inside_training
        (array([0, 1, 2, 3]), True)
        >>> points[answer].tolist()
        [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
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
        """Whether the instance's size and features are in the range that training covered."""
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
        """Draw the answer and, dashed, a better one if the task's first labeller finds it.

        The answer is drawn alone if the task has no labeller, or is a `Problem`, whose labellers
        may take long.

        Args:
            ax: matplotlib's axes. None makes a new figure.

        Returns:
            The axes.

        Raises:
            InputError: a coordinate cannot be drawn.
            MissingExtraError: matplotlib is not installed.

        Examples:
            >>> answer = ptrnet.load("hull").answer([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
            >>> answer.plot().figure.savefig("hull.png")
        """
        from ptrnet.plots.answer import draw_answered
        from ptrnet.plots.figure import axes_or_new

        ax = axes_or_new(ax)
        draw_answered(ax, self.task, self.example, None)
        return ax

    def _repr_png_(self) -> bytes | None:
        """Return the picture for a notebook, or None if there is no picture or no matplotlib."""
        if not self.task.has_picture:
            return None
        try:
            from matplotlib.figure import Figure
        except ImportError:
            return None
        figure, stream = Figure(figsize=(5, 5), layout="constrained"), BytesIO()
        self.plot(figure.add_subplot())
        figure.savefig(stream, format="png", dpi=110)
        return stream.getvalue()


def cost_of(task: Task, answered: Example) -> float | None:
    """Return the cost of an example's answer, or None if the task has no cost."""
    assert answered.outputs is not None
    costs = task.costs(answered, [answered.outputs])
    return None if costs is None else float(np.asarray(costs)[0])


def finite_cost(task: Task, answered: Example) -> float | None:
    """Return the cost for JSON: None if there is none, or if it is infinite or NaN."""
    cost = cost_of(task, answered)
    return cost if cost is not None and math.isfinite(cost) else None
