"""The options of `solve` that draw one answer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.errors import InputError

if TYPE_CHECKING:
    from ptrnet.solver import Solver
    from ptrnet.tasks.base import Task
    from ptrnet.types import Example


@dataclass(frozen=True)
class PictureOptions:
    """The pictures to write, if any, and the instance that they show."""

    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw one answer: FILE.png or FILE.svg.")
    ] = None
    attention: Annotated[
        Path | None,
        typer.Option("--attention", help="Draw the attention at each step: FILE.png or FILE.svg."),
    ] = None
    index: Annotated[
        int, typer.Option("--index", min=0, help="The instance to draw; 0 is the first.")
    ] = 0

    @property
    def are_wanted(self) -> bool:
        """Whether there is a picture to draw."""
        return self.plot is not None or self.attention is not None

    def check(self, task: "Task") -> None:
        """Raise InputError if a picture cannot be drawn or written, before any work is done."""
        if self.plot is not None and not task.has_picture:
            raise InputError(
                f"--plot: problem {task.name} has no picture: its class does not define `draw`"
            )
        for path in (self.plot, self.attention):
            if path is not None:
                from ptrnet.plots.figure import check_picture

                check_picture(path)

    def check_index(self, count: int) -> None:
        """Raise InputError if a picture is wanted and the index is not below `count`."""
        if self.are_wanted and self.index >= count:
            raise InputError(f"--index: expected 0 to {count - 1}, got {self.index}")

    def draw_attention(self, solver: "Solver", answered: Sequence["Example"]) -> None:
        """Write the picture of the pointer's attention, if it is wanted."""
        if self.attention is None:
            return
        from ptrnet.plots.attention import draw_attention

        example = answered[self.index]
        probabilities, tokens = solver.attention(example)
        draw_attention(self.attention, solver.task, example, probabilities, tokens)

    @contextmanager
    def plotting(
        self, solver: "Solver", answered: Sequence["Example"], examples: Sequence["Example"]
    ) -> Iterator[None]:
        """Draw the answer if wanted, run the block, and write the picture if the block succeeds."""
        if self.plot is None:
            yield
            return
        from ptrnet.plots.answer import draw_answered, picture_size
        from ptrnet.plots.figure import axes

        example = answered[self.index]
        with axes(self.plot, *picture_size(solver.task, example)) as ax:
            draw_answered(ax, solver.task, example, examples[self.index].outputs)
            yield
