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

    NumPy treats an answer as the array of its indices, so `points[answer]` works.

    Args:
        inputs: the instance `(n, d)`.
        outputs: 0-based indices `(m,)`. Triangles are `(t, 3)`.
        log_prob: the log-probability that the model gives to its answer. If elements are nearly
            equal, an exact rule of the task may have corrected the answer afterwards. `outputs` is
            then the corrected answer. If the model answered several views of the instance (see
            `augment` of `Solver.solve`), the log-probability is for the view whose answer was
            chosen.
        cost: the cost of the answer, such as a tour's length. A lower cost is better. None if the
            task has no cost.
        decoder: the name of the decoder.
        seconds: the time that the answer took. If several instances were answered together, each
            answer has an equal share of the time.
        warnings: one message for each way in which the instance is out of distribution.
        task: the task of the model.
        elements: the elements in the order of the answer, as the user gave them: dictionaries with
            all fields, or rows of `inputs`. For triangles, lists of three elements.
        example: the instance with the model's answer. It keeps the names of the elements and the
            kind of distance.

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
    def probability(self) -> float:
        """The probability that the model gives to its answer, from 0 to 1; see `log_prob`."""
        return math.exp(self.log_prob)

    @property
    def is_inside_training(self) -> bool:
        """Whether there are no warnings: the instance is like the instances of the training."""
        return not self.warnings

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Indices:
        return np.array(self.outputs, dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, index: Any) -> Any:
        return self.outputs[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.outputs)

    def plot(self, ax: Any = None) -> Any:
        """Draw the answer.

        The task's first labeller, an algorithm, also answers the instance. If the labeller's answer
        is better than the model's answer, draw both, the labeller's with dashed lines. If the task
        has no labeller, or is a `Problem`, whose labellers may take long, draw only the model's
        answer.

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
        """Return a PNG for notebooks. None if the task has no picture or matplotlib is missing."""
        if not self.task.facts.has_picture:
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
    """Return the cost for JSON. None if the task has no cost, or the cost is infinite or NaN."""
    cost = cost_of(task, answered)
    return cost if cost is not None and math.isfinite(cost) else None
