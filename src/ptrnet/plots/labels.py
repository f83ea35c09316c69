"""Names of elements and features, and where they are drawn.

A name is next to its point, overlaps no other name, hides no point, and stays in the frame.
"""

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.types import Example, Floats

# FONT_SIZE, GAP and RADIUS are in points of type, 1/72 inch.
FONT_SIZE = 7.0
GAP = 4.5  # distance between a point's centre and its name
RADIUS = 3.5  # half the side of the square around a point that no name may overlap
# The places of a name: right of its point, left, above, below, and the corners.
DIRECTIONS = np.array(
    [[1, 0], [-1, 0], [0, 1], [0, -1], [0.8, 0.8], [-0.8, 0.8], [0.8, -0.8], [-0.8, -0.8]]
)

Box = NDArray[np.float64]  # x and y of the lower left, then of the upper right, in pixels


def draw_labels(
    ax: Any, names: Sequence[str], points: Floats, first: Sequence[int], lines: Sequence[Floats]
) -> None:
    """Write names next to points. Names without room in the frame are left out.

    Args:
        ax: the axes, on which everything else is drawn already.
        names: the name of each point, empty if the point has none.
        points: the points `(n, 2)`.
        first: the points whose names are placed first. If possible, the name of such a point is on
            the side that faces away from the mean of all points.
        lines: lines `(num_points, 2)`. A name crosses a line only if no other place is free.
    """
    elements = sorted(
        (i for i, name in enumerate(names) if name.strip()), key=lambda i: i not in first
    )
    if not elements:
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # drawn as a box
        ax.figure.canvas.figure.draw_without_rendering()  # the layout is known after a drawing
        # Fix the limits, so that the names do not change them.
        ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim(), adjustable="box")
        frame = ax.bbox.extents
        unit = ax.figure.dpi / 72  # pixels in a point of type
        centres = ax.transData.transform(points)
        # Boxes that no name may overlap: points, and the names that are placed already.
        taken = np.hstack([centres - RADIUS * unit, centres + RADIUS * unit])
        along = np.tile(_points_along(ax, lines), 2)
        for i in elements:
            outward = DIRECTIONS @ (centres[i] - centres.mean(0)) * (i in first)
            candidates = []
            for k, box in enumerate(_boxes(centres[i], _size(ax, names[i]), unit)):
                is_inside = (box[:2] >= frame[:2]).all() and (box[2:] <= frame[2:]).all()
                if is_inside and not _overlaps(box, taken).any():
                    candidates.append((_overlaps(box, along).any(), -outward[k], k, box))
            if candidates:
                *_, k, box = min(candidates, key=lambda candidate: candidate[:3])
                taken = np.vstack([taken, box])
                _write(ax, names[i], points[i], DIRECTIONS[k] * GAP)


def _write(ax: Any, name: str, point: Floats, offset: Floats) -> None:
    """Write a name at an offset from its point, in points of type."""
    x, y = np.sign(offset).astype(int) + 1
    ax.annotate(
        name,
        point,
        xytext=offset,
        textcoords="offset points",
        ha=("right", "center", "left")[x],
        va=("top", "center", "bottom")[y],
        fontsize=FONT_SIZE,
        parse_math=False,  # otherwise matplotlib takes $ for the start of a formula
    )


def _size(ax: Any, name: str) -> Floats:
    """Return width and height of a name in pixels."""
    text = ax.text(0, 0, name, fontsize=FONT_SIZE, parse_math=False)
    box = text.get_window_extent()
    text.remove()
    return np.array([box.width, box.height])


def _boxes(centre: Floats, size: Floats, unit: float) -> list[Box]:
    """Return the possible places of a name around a point: a box for each direction."""
    corners = centre + DIRECTIONS * GAP * unit - size * (1 - np.sign(DIRECTIONS)) / 2
    return list(np.hstack([corners, corners + size]))


def _overlaps(box: Box, others: Floats) -> NDArray[np.bool_]:
    """Return `(num_boxes,)`: whether each of the other boxes `(num_boxes, 4)` overlaps the box."""
    return np.all((others[:, :2] < box[2:]) & (others[:, 2:] > box[:2]), axis=1)


def _points_along(ax: Any, lines: Sequence[Floats]) -> Floats:
    """Return points `(num_points, 2)` along the lines, so close that no name fits between two."""
    dots = [np.zeros((0, 2))]
    for line in lines:
        corners = ax.transData.transform(line) if len(line) else np.zeros((0, 2))
        for start, end in pairwise(corners):
            steps = int(np.hypot(*(end - start)) / 3) + 2
            dots.append(start + np.linspace(0, 1, steps)[:, None] * (end - start))
    return np.concatenate(dots)


def element_names(example: Example) -> list[str]:
    """Return the names of the elements, or an empty list if the user gave an array of numbers.

    In a table, the name of an element is its first cell that is not a feature. In a dictionary, the
    name is the first text. Without such a cell or text, the name is empty.
    """
    if example.table is not None:
        numeric = example.table.numeric
        return [
            next((cell for k, cell in enumerate(row) if k not in numeric), "")
            for row in example.table.rows
        ]
    return [
        next((value for value in element.values() if isinstance(value, str)), "")
        for element in example.elements or ()
    ]


def feature_names(example: Example) -> list[str]:
    """Return the names of the d features.

    The list is empty if the features have no names, or if a category became several features.
    """
    if example.table is not None:
        header = example.table.header
        names = [] if header is None else [header[k] for k in example.table.numeric]
    else:
        fields: Mapping[str, Any] = example.elements[0] if example.elements else {}
        names = [name for name, value in fields.items() if isinstance(value, Real)]
    return names if len(names) == example.inputs.shape[1] else []
