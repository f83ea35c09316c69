"""Matplotlib figures. A figure's file is written only if the drawing succeeds."""

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ptrnet.errors import InputError, check_package
from ptrnet.files import atomic_path, check_writable

FORMATS = (".png", ".svg")


def check_picture(path: Path) -> None:
    """Raise InputError if no picture can be written to a path. Call this before any work."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: expected a picture's name, ending in {' or '.join(FORMATS)}")
    check_writable(path)
    check_matplotlib()


def check_matplotlib() -> None:
    """Raise MissingExtraError if matplotlib is not installed."""
    check_package("matplotlib", "drawing", "plot")


def axes_or_new(ax: Any) -> Any:
    """Return the caller's axes, or new axes if `ax` is None.

    New axes are in a pyplot figure, because notebooks show such figures.

    Raises:
        InputError: `ax` is neither axes nor None.
        MissingExtraError: matplotlib is not installed.
    """
    check_matplotlib()
    from matplotlib import pyplot
    from matplotlib.axes import Axes

    if ax is None:
        return pyplot.figure(figsize=(6, 6), layout="constrained").add_subplot()
    if not isinstance(ax, Axes):
        raise InputError(f"ax: expected axes of matplotlib, got {type(ax).__name__}")
    return ax


@contextlib.contextmanager
def axes(path: Path, width: float = 6.0, height: float = 6.0) -> Iterator[Any]:
    """Yield the axes of a new figure. If the block ends without an error, write the figure.

    Examples:
        >>> with axes(Path("points.png")) as ax:
        ...     ax.plot([0, 1], [1, 0], "o")
    """
    with figure(path, width, height) as fig:
        yield fig.add_subplot()


@contextlib.contextmanager
def figure(path: Path, width: float, height: float) -> Iterator[Any]:
    """Yield a figure of a size in inches. If the block ends without an error, write the figure."""
    check_picture(path)
    import matplotlib
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width, height), layout="constrained")
    yield fig
    extension = path.suffix.lower().removeprefix(".")
    # Equal pictures give equal files, because an .svg file gets no date and no random numbers.
    metadata = {"Date": None} if extension == "svg" else None
    settings = matplotlib.rc_context({"svg.hashsalt": "ptrnet", "svg.fonttype": "none"})
    with atomic_path(path) as temporary, settings, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # drawn as a box
        fig.savefig(temporary, format=extension, dpi=150, metadata=metadata)
