"""Pictures of a pointer's attention: a matrix of steps by tokens and, for points, each step."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ptrnet.errors import InputError
from ptrnet.plots.answer import ANSWER_COLOR, QUIET_COLOR
from ptrnet.plots.figure import figure
from ptrnet.plots.labels import element_names
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices

MAX_SIDE = 200  # with more rows or columns, a reader could not distinguish them
MAX_PICTURES = 24  # steps that have a picture, from the first on: four rows
MAX_NUMBERS, MAX_NAMES = 20, 40  # labels below a matrix; names are upright, so more of them fit
MAX_LETTERS = 16  # letters of such a name
_COLUMNS = 6  # pictures of steps in a row


def draw_attention(
    path: Path, task: Task, example: Example, probabilities: Floats, tokens: Indices
) -> None:
    """Write the picture of one answer.

    Args:
        path: path of the picture, ending in .png or .svg.
        task: the task of the instance.
        example: the instance in its own units. Elements are named by its table, or by the fields of
            its elements.
        probabilities: `(m, S + n)` probabilities of the tokens at each step, special slots first.
        tokens: `(m,)` tokens of the answer.

    Raises:
        InputError: there are more than `MAX_SIDE` steps or tokens.
    """
    num_pictures = min(len(tokens), MAX_PICTURES) if task.num_features == 2 else 0
    rows, names = -(-num_pictures // _COLUMNS), element_names(example)
    with figure(path, 9.0, 4.5 + 1.6 * rows) as fig:
        if not num_pictures:
            draw_matrix(fig.add_subplot(), probabilities, tokens, task.special_names, names)
            return
        upper, lower = fig.subfigures(2, 1, height_ratios=[4.5, 1.6 * rows])
        draw_matrix(upper.add_subplot(), probabilities, tokens, task.special_names, names)
        for step, ax in enumerate(lower.subplots(rows, _COLUMNS, squeeze=False).flat):
            if step < num_pictures:
                _draw_step(ax, example.inputs, probabilities, tokens, step, task.special_names)
            else:
                ax.set_axis_off()


def draw_matrix(
    ax: Any,
    probabilities: Floats,
    tokens: Indices,
    special_names: Sequence[str],
    names: Sequence[str] = (),
) -> None:
    """Draw probabilities as shades of blue, with a square around each token of the answer.

    Args:
        ax: the axes to draw on.
        probabilities: `(m, S + n)` probabilities of the tokens at each step, special slots first.
        tokens: `(m,)` tokens of the answer.
        special_names: S names of the special slots.
        names: names of the elements, shown in place of their numbers.

    Raises:
        InputError: there are more than `MAX_SIDE` steps or tokens.
    """
    if max(probabilities.shape) > MAX_SIDE:
        raise InputError(
            f"attention: expected at most {MAX_SIDE} steps over as many tokens, got "
            f"{probabilities.shape[0]} over {probabilities.shape[1]}"
        )
    image = ax.imshow(probabilities, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    ax.plot(tokens, range(len(tokens)), "s", mfc="none", mec=QUIET_COLOR, ms=5, label="chosen")
    ax.set_ylabel("step")
    ax.set_xlabel("token")
    num_tokens, num_specials = probabilities.shape[1], len(special_names)
    stride = max(1, -(-(num_tokens - num_specials) // (MAX_NAMES if any(names) else MAX_NUMBERS)))
    elements = range(num_specials, num_tokens, stride)
    labels = [*special_names, *(_tick(t - num_specials, names) for t in elements)]
    ticks = ax.set_xticks([*range(num_specials), *elements], labels, parse_math=False)
    if any(names):
        for tick in ticks:
            tick.label1.set(rotation=90, fontsize=8)
    ax.legend(loc="upper left", bbox_to_anchor=(0, 1.12), frameon=False)
    ax.figure.colorbar(image, ax=ax, label="probability")


def _tick(element: int, names: Sequence[str]) -> str:
    """Return the label below an element's column: its name, truncated, or its number."""
    name = "".join(c for c in names[element] if c.isprintable()) if any(names) else ""
    if len(name) > MAX_LETTERS:
        name = name[: MAX_LETTERS - 1] + "\u2026"
    return name or str(element)


def _draw_step(
    ax: Any,
    inputs: Floats,
    probabilities: Floats,
    tokens: Indices,
    step: int,
    special_names: Sequence[str],
) -> None:
    """Draw the points, larger and bluer if they are likelier, and a ring around the chosen one."""
    num_specials = len(special_names)
    weights = probabilities[step, num_specials:]
    ax.scatter(*inputs.T, s=4 + 60 * weights, c=weights, cmap="Blues", vmin=-0.3, vmax=1)
    token = tokens[step]
    element = token - num_specials
    if element >= 0:
        ax.plot(*inputs[element], "o", mfc="none", mec=ANSWER_COLOR, ms=9)
        ax.set_title(f"step {step}: {element}", fontsize=8)
    else:
        special = f"{special_names[token]} {probabilities[step, token]:.0%}"
        ax.set_title(f"step {step}: {special}", fontsize=8)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal", adjustable="datalim")
