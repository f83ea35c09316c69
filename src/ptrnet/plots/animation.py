"""How an answer comes about: the pointer at each step, and the answer so far, as an animation."""

from typing import Any

import numpy as np

from ptrnet.errors import InputError, MissingExtraError
from ptrnet.plots.answer import ANSWER_COLOR, QUIET_COLOR, text_color
from ptrnet.tasks.base import Task
from ptrnet.types import Floats, Indices

MILLISECONDS = 500  # a step stays
MIN_PROBABILITY = 0.005  # a probability below it is not drawn


def animate(task: Task, inputs: Floats, probabilities: Floats, tokens: Indices) -> Any:
    """The animation of one answer: a frame for each step, and one of the whole answer.

    From the element pointed at last a line leads to each element, as wide as it is likely to be the
    next one.

    Args:
        task: of the instance.
        inputs: `(n, 2)`, the instance in its own units.
        probabilities: `(m, S + n)` of the tokens at each step, special slots first.
        tokens: `(m,)`, the answer's.

    Returns:
        matplotlib's `FuncAnimation`: `save("answer.gif")` writes it, `to_jshtml()` is a player.

    Raises:
        InputError: elements are no points of the plane.
        MissingExtraError: matplotlib is not installed.
    """
    if inputs.shape[1] != 2:
        raise InputError(f"animation: expected points of the plane, got {inputs.shape[1]} features")
    try:
        from matplotlib.animation import FuncAnimation
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing", "plot") from None
    figure = Figure(figsize=(5.0, 5.0), layout="constrained")
    ax = figure.add_subplot()

    def draw(step: int) -> None:
        ax.clear()
        _draw_step(ax, task, inputs, probabilities, tokens, step)

    return FuncAnimation(figure, draw, frames=len(tokens) + 1, interval=MILLISECONDS)


def _draw_step(
    ax: Any, task: Task, inputs: Floats, probabilities: Floats, tokens: Indices, step: int
) -> None:
    """The answer before a step, and where the pointer looks at it; after the last, the answer."""
    num_specials = task.num_specials
    pointed_at = tokens[:step][tokens[:step] >= num_specials] - num_specials
    ax.plot(*inputs.T, "o", color=text_color(), ms=4, zorder=3)
    if step < len(tokens):
        ax.plot(*inputs[pointed_at].T, "o-", color=ANSWER_COLOR, lw=1.6, ms=6, zorder=4)
        start = inputs[pointed_at[-1]] if len(pointed_at) else inputs.mean(0)
        for j in np.flatnonzero(probabilities[step, num_specials:] >= MIN_PROBABILITY):
            p = float(probabilities[step, num_specials + j])
            line = np.stack([start, inputs[j]])
            ax.plot(*line.T, color=QUIET_COLOR, lw=0.5 + 5 * p, alpha=0.25 + 0.6 * p, zorder=2)
        ended = float(probabilities[step, 0])
        ax.set_title(f"step {step + 1}: the end with {ended:.0%}", fontsize=11, loc="left")
    else:
        outputs = task.from_tokens(tokens[tokens != 0])
        for line in task.draw(inputs, outputs).lines:
            ax.plot(*line.T, color=ANSWER_COLOR, lw=1.6, zorder=2)
        ax.plot(*inputs[pointed_at].T, "o", color=ANSWER_COLOR, ms=6, zorder=4)
        ax.set_title("the answer", fontsize=11, loc="left")
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.08)
    ax.set_axis_off()
