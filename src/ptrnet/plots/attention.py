"""The picture of a pointer's attention: a matrix of steps by tokens."""

from collections.abc import Sequence
from typing import Any

from ptrnet.errors import InputError
from ptrnet.plots.answer import QUIET_COLOR
from ptrnet.types import Floats, Indices

MAX_SIDE = 200  # with more rows or columns, a reader could not distinguish them
MAX_NUMBERS, MAX_NAMES = 20, 40  # maxima below a matrix; names are vertical, so more of them fit
MAX_LETTERS = 16  # letters of a name below a matrix


def draw_matrix(
    ax: Any,
    probabilities: Floats,
    tokens: Indices,
    special_names: Sequence[str],
    names: Sequence[str] = (),
) -> None:
    """Draw probabilities as shades of blue, with a square around each token of the answer.

    Args:
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
