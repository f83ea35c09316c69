"""Shares of alternatives before and after a change, with their intervals."""

from typing import Any

from ptrnet.plots.answer import ANSWER_COLOR, QUIET_COLOR, quieten

MAX_ALTERNATIVES = 40


def shares_height(count: int) -> float:
    """Return the height in inches that `count` alternatives need."""
    return 1.3 + 0.4 * min(count, MAX_ALTERNATIVES)


def draw_shares(ax: Any, shares: Any, column: str) -> None:
    """Draw the shares of each alternative in a row: before a change, and after it.

    Args:
        shares: the frame `shares` of a simulation. Only its first `MAX_ALTERNATIVES` rows are
            drawn.
    """
    shares = shares[:MAX_ALTERNATIVES]
    has_after = "after" in shares
    for name, color, shift in (("before", QUIET_COLOR, -0.15), ("after", ANSWER_COLOR, 0.15)):
        if name not in shares:
            continue
        places = [place + shift * has_after for place in range(len(shares))]
        low, high = shares[f"{name}_low"], shares[f"{name}_high"]
        ax.hlines(places, low, high, color=color, lw=1.6)
        ax.plot(shares[name], places, "o", color=color, ms=5, label=name)
    ax.set_yticks(range(len(shares)), shares[column].astype(str), parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("share of choices, with 95% interval", fontsize=9)
    quieten(ax)
    if has_after:
        ax.legend(frameon=False, fontsize=9)
