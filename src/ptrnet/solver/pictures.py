"""What a solver draws: its answers, where it looked for them, and how they came about."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ptrnet.attention import attention
from ptrnet.data.examples import one_example
from ptrnet.errors import InputError
from ptrnet.models.base import PointerModel
from ptrnet.solver.answer import Answer
from ptrnet.tasks.base import Task
from ptrnet.types import Example


class Pictures(ABC):
    """Base class of `Solver`: its methods that need matplotlib, the extra "plot"."""

    model: PointerModel
    task: Task

    @abstractmethod
    def solve_examples(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples with the model's answers."""

    def plot(self, points: Any, ax: Any = None) -> Any:
        """Draws the model's answer to one instance, and the true one, dashed, where it is better.

        Args:
            points: the instance, as `solve` takes it, or an example with a known answer: what is
                drawn is still the model's. Or an `Answer`, which is drawn itself.
            ax: matplotlib's axes; those of a new figure when None.

        Returns:
            The axes.

        Raises:
            InputError: not one instance, or one that cannot be used or drawn.
            MissingExtraError: matplotlib is not installed.
        """
        from ptrnet.plots.answer import draw_answered
        from ptrnet.plots.figure import axes_or_new

        if isinstance(points, Answer):
            self._check_task(points)
            return points.plot(ax)
        example = one_example(points, self.task)
        (answered,) = self.solve_examples([example])
        ax = axes_or_new(ax)
        draw_answered(ax, self.task, answered, example.outputs)
        return ax

    def plot_attention(self, points: Any, ax: Any = None) -> Any:
        """Draws where the pointer looked: a row for each step, a column for each token.

        Args:
            points: one instance, as `solve` takes it; or an example or an `Answer`, which is
                followed.
            ax: as in `plot`.

        Raises:
            InputError: as in `plot`, or more than 200 steps or tokens.
        """
        from ptrnet.plots.attention import draw_matrix
        from ptrnet.plots.figure import axes_or_new
        from ptrnet.plots.labels import element_names

        known = self._answered(points)
        probabilities, tokens = attention(self.model, self.task, known)
        ax = axes_or_new(ax)
        draw_matrix(ax, probabilities, tokens, self.task.special_names, element_names(known))
        return ax

    def animate(self, points: Any) -> Any:
        """How an answer comes about, step by step.

        Args:
            points: as in `plot_attention`, in the plane.

        Returns:
            matplotlib's animation: `save("answer.gif")` writes it, a notebook shows `to_jshtml()`.

        Raises:
            InputError: as in `plot`, or elements that are no points of the plane.
            MissingExtraError: matplotlib is not installed.
        """
        from ptrnet.plots.answer import animate

        known = self._answered(points)
        return animate(self.task, known.inputs, *attention(self.model, self.task, known))

    def _answered(self, points: Any) -> Example:
        """An instance with the answer that is to be followed: its own, or else the model's."""
        if isinstance(points, Answer):
            self._check_task(points)
            return points.example
        example = one_example(points, self.task)
        return example if example.outputs is not None else next(self.solve_examples([example]))

    def _check_task(self, answer: Answer) -> None:
        if answer.task.name != self.task.name:
            raise InputError(
                f"expected an answer of task {self.task.name}, got one of {answer.task.name}"
            )
