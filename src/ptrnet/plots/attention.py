"""Where the pointer looked: a matrix over steps and tokens, and for points a picture of each step.

V says that looking at attention is what led to the model.
"""

from pathlib import Path
from typing import Any

from ptrnet.errors import InputError
from ptrnet.plots.answer import INK, OURS
from ptrnet.plots.figure import figure
from ptrnet.tasks.base import Task
from ptrnet.types import Floats, Indices

MOST_STEPS = 200  # rows that are still to be told apart
MOST_PICTURES = 24
_COLUMNS = 6


def draw_attention(
    path: Path, task: Task, inputs: Floats, probabilities: Floats, tokens: Indices
) -> None:
    """Writes the picture of one answer.

    Args:
        path: ending in .png or .svg.
        task: of the instance.
        inputs: `(n, d)`, the instance in its own units.
        probabilities: `(M, S + n)` of the tokens at each step, special slots first.
        tokens: `(M,)` that were chosen.

    Raises:
        InputError: an answer of more steps than a picture can show.
    """
    if max(probabilities.shape) > MOST_STEPS:
        raise InputError(
            f"--attention: expected at most {MOST_STEPS} steps over as many tokens, got "
            f"{probabilities.shape[0]} over {probabilities.shape[1]}"
        )
    pictures = min(len(tokens), MOST_PICTURES) if task.num_features == 2 else 0
    rows = -(-pictures // _COLUMNS)
    with figure(path, 9.0, 4.5 + 1.6 * rows) as fig:
        if not pictures:
            _matrix(fig.add_subplot(), probabilities, tokens, task.num_specials)
            return
        above, below = fig.subfigures(2, 1, height_ratios=[4.5, 1.6 * rows])
        _matrix(above.add_subplot(), probabilities, tokens, task.num_specials)
        for step, ax in enumerate(below.subplots(rows, _COLUMNS, squeeze=False).flat):
            if step < pictures:
                _step(ax, inputs, probabilities, tokens, step, task.num_specials)
            else:
                ax.set_axis_off()


def _matrix(ax: Any, probabilities: Floats, tokens: Indices, num_specials: int) -> None:
    shown = ax.imshow(probabilities, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    ax.plot(tokens, range(len(tokens)), "s", mfc="none", mec=INK, ms=5, label="chosen")
    ax.set_ylabel("step")
    ax.set_xlabel("token")
    count = probabilities.shape[1]
    every = max(1, (count - num_specials) // 20)
    places = [*range(num_specials), *range(num_specials, count, every)]
    names = ["end", "<ENDT>"][:num_specials] + [
        str(p - num_specials) for p in places[num_specials:]
    ]
    ax.set_xticks(places, names)
    ax.legend(loc="upper left", bbox_to_anchor=(0, 1.12), frameon=False)
    ax.figure.colorbar(shown, ax=ax, label="probability")


def _step(
    ax: Any, inputs: Floats, probabilities: Floats, tokens: Indices, step: int, num_specials: int
) -> None:
    """The points, each the larger and bluer the likelier; a ring around the chosen one."""
    likely = probabilities[step, num_specials:]
    ax.scatter(*inputs.T, s=4 + 60 * likely, c=likely, cmap="Blues", vmin=-0.3, vmax=1)
    chosen = tokens[step] - num_specials
    if chosen >= 0:
        ax.plot(*inputs[chosen], "o", mfc="none", mec=OURS, ms=9)
        ax.set_title(f"step {step}: {chosen}", fontsize=8)
    else:
        name = "end" if tokens[step] == 0 else "<ENDT>"
        ax.set_title(f"step {step}: {name} {probabilities[step, tokens[step]]:.0%}", fontsize=8)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal", adjustable="datalim")
