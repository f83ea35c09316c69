"""The picture of an instance with the network's answer, and the true one where they differ."""

from collections.abc import Sequence
from typing import Any

from ptrnet.errors import InputError
from ptrnet.tasks.base import Drawing, Task
from ptrnet.types import Example, Indices

ANSWER_COLOR, TRUTH_COLOR, POINT_COLOR = "#1f5fbf", "#d1495b", "#333333"
MAX_NAMES = 60  # more would hide the points
MAX_COORDINATE = 1e300  # the margins of axes must be finite too


def draw_answered(ax: Any, task: Task, answered: Example, known: Indices | None) -> None:
    """Draws the network's answer to an example, and the true one, dashed, where it is better.

    Args:
        ax: the axes to draw on.
        task: of the example.
        answered: with the network's answer; names of the elements are those of its table.
        known: the true answer, where a file had one; for tasks with labellers it is computed.

    Raises:
        InputError: a coordinate larger than `MAX_COORDINATE`.
    """
    inputs, outputs = answered.inputs, answered.outputs
    assert outputs is not None
    true_outputs = _true_outputs(task, answered) if task.labellers else known
    if true_outputs is None or task.is_correct(answered._replace(outputs=true_outputs), outputs):
        truth = None
    else:
        truth = task.draw(inputs, true_outputs)
    kind = f"{task.name} of " if task.labellers else ""
    title = f"{kind}{len(inputs)} elements, answered by a pointer network"
    for name, value in task.answer_stats(answered).items():
        title += f", {name} {value:,.6g}"
    draw_answer(ax, task.draw(inputs, outputs), truth, _names(answered), title)


def _true_outputs(task: Task, example: Example) -> Indices | None:
    """The answer of the task's first labeller, where it serves so many elements and has one."""
    try:
        task.check_labeller(None, len(example.inputs))
    except InputError:
        return None
    (outputs,) = task.unpad(task.label(example.inputs[None], None, example.distance))
    return outputs if len(outputs) else None


def _names(example: Example) -> list[str]:
    """The elements' names: the first cell of each row that is no feature."""
    if example.table is None:
        return []
    numeric = example.table.numeric
    return [
        next((cell for k, cell in enumerate(row) if k not in numeric), "")
        for row in example.table.rows
    ]


def draw_answer(
    ax: Any,
    answer: Drawing,
    truth: Drawing | None = None,
    names: Sequence[str] = (),
    title: str = "",
) -> None:
    """Draws points and the answer's lines.

    Args:
        ax: the axes to draw on.
        answer: the network's.
        truth: the true answer, drawn dashed; None where it is the same or not known.
        names: of the points; left out where they are more than `MAX_NAMES`.
        title: above the picture.

    Raises:
        InputError: a coordinate larger than `MAX_COORDINATE`.
    """
    if abs(answer.points).max(initial=0) > MAX_COORDINATE:
        raise InputError(f"coordinates beyond {MAX_COORDINATE:g} cannot be drawn")
    if truth is not None:
        _plot_lines(ax, truth, "--", TRUTH_COLOR, "true answer")
    _plot_lines(ax, answer, "-", ANSWER_COLOR, "network's answer")
    ax.plot(*answer.points.T, "o", color=POINT_COLOR, ms=4, zorder=3)
    if len(names) <= MAX_NAMES:
        for name, point in zip(names, answer.points, strict=False):
            name = "".join(c for c in name if c.isprintable())
            offset = {"xytext": (3, 3), "textcoords": "offset points", "fontsize": 6}
            ax.annotate(name, point, parse_math=False, **offset)  # a $ in a name is a $
    ax.set_title(title)
    if answer.equal_axes:
        ax.set_aspect("equal", adjustable="datalim")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=2, frameon=False)


def _plot_lines(ax: Any, drawing: Drawing, style: str, color: str, label: str) -> None:
    for k, line in enumerate(drawing.lines):  # one label for all: the legend has it once
        ax.plot(*line.T, style, color=color, lw=1.6, label=label if k == 0 else None)
