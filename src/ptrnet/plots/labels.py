"""Names of elements and features, and where they are drawn.

A name beside a point overlaps no other name, hides no point, and stays in the frame.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptrnet.types import Example, Floats

FONT_SIZE = 7.0  # points, as are these two
GAP = 4.5  # between a point's centre and its name
RADIUS = 3.5  # around a point that stays free
ROUNDS = 4  # in which the frame grows around names that leave it
# The places of a name: right of its point, left, above, below, and the corners.
DIRECTIONS = np.array(
    [[1, 0], [-1, 0], [0, 1], [0, -1], [0.8, 0.8], [-0.8, 0.8], [0.8, -0.8], [-0.8, -0.8]]
)

Box = NDArray[np.float64]  # x and y of the lower left, then of the upper right, in pixels


class _Label(NamedTuple):
    """A name that has a place."""

    element: int
    direction: Floats  # (2,)
    box: Box


def draw_labels(
    ax: Any, names: Sequence[str], points: Floats, first: Iterable[int], lines: Sequence[Floats]
) -> None:
    """Writes names beside points, as many as find room, and grows the frame to hold them.

    Args:
        ax: the axes, on which all else is drawn.
        names: of the points; empty where one has none.
        points: `(n, 2)`.
        first: the points that are labelled before the others, away from the middle.
        lines: each `(num_points, 2)`; a name crosses one only if no other place is free.
    """
    pointed_at = {i for i in first if i < len(names)}
    candidates = [i for i, name in enumerate(names) if name.strip()]
    elements = sorted(candidates, key=lambda i: i not in pointed_at)
    if not elements:
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # drawn as a box
        labels = _laid_out(ax, names, points, elements, pointed_at, lines)
    for element, direction, _ in labels:
        x, y = direction * GAP
        ax.annotate(
            names[element],
            points[element],
            xytext=(x, y),
            textcoords="offset points",
            ha=("right", "center", "left")[int(np.sign(x)) + 1],
            va=("top", "center", "bottom")[int(np.sign(y)) + 1],
            fontsize=FONT_SIZE,
            parse_math=False,  # a $ in a name is a $
        )


def _laid_out(
    ax: Any,
    names: Sequence[str],
    points: Floats,
    elements: Sequence[int],
    pointed_at: set[int],
    lines: Sequence[Floats],
) -> list[_Label]:
    """The names that find a place in the frame, which is grown for them."""
    figure = ax.figure.canvas.figure
    figure.draw_without_rendering()  # lays it out
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim(), adjustable="box")  # limits are ours from here
    sizes = {i: _size(ax, names[i]) for i in elements}
    for _ in range(ROUNDS):
        labels = _place(ax, elements, sizes, points, pointed_at, lines, None)
        if not _grow(ax, [label.box for label in labels]):
            return labels
        figure.draw_without_rendering()
    # A name as wide as the picture: it, or another, is left out.
    return _place(ax, elements, sizes, points, pointed_at, lines, ax.bbox.extents)


def _size(ax: Any, name: str) -> Floats:
    """Width and height of a name, in pixels."""
    text = ax.text(0, 0, name, fontsize=FONT_SIZE, parse_math=False)
    box = text.get_window_extent()
    text.remove()
    return np.array([box.width, box.height])


def _place(
    ax: Any,
    elements: Sequence[int],
    sizes: dict[int, Floats],
    points: Floats,
    pointed_at: set[int],
    lines: Sequence[Floats],
    frame: Box | None,
) -> list[_Label]:
    """The names that find a place, in the order of the elements."""
    unit = ax.figure.dpi / 72  # pixels of a point of type
    centres = ax.transData.transform(points)
    dots = np.hstack([centres - RADIUS * unit, centres + RADIUS * unit])
    along = _points_along(ax, lines)
    middle = centres.mean(0)
    labels: list[_Label] = []
    for i in elements:
        boxes = _boxes(centres[i], sizes[i], unit)
        taken = np.array([label.box for label in labels]).reshape(-1, 4)
        outward = (
            DIRECTIONS @ (centres[i] - middle) if i in pointed_at else np.zeros(len(DIRECTIONS))
        )
        candidates = []
        for k, box in enumerate(boxes):
            is_inside = frame is None or (box[:2] >= frame[:2]).all() & (box[2:] <= frame[2:]).all()
            if is_inside and not (_overlaps(box, taken).any() or _overlaps(box, dots).any()):
                is_crossed = bool(_overlaps(box, np.hstack([along, along])).any())
                candidates.append((is_crossed, -outward[k], k))
        if candidates:
            *_, k = min(candidates)
            labels.append(_Label(i, DIRECTIONS[k], boxes[k]))
    return labels


def _boxes(centre: Floats, size: Floats, unit: float) -> list[Box]:
    """The places for a name of a size around a point: a box for each direction."""
    boxes = []
    for direction in DIRECTIONS:
        corner = centre + direction * GAP * unit - size * (1 - np.sign(direction)) / 2
        boxes.append(np.concatenate([corner, corner + size]))
    return boxes


def _overlaps(box: Box, others: Floats) -> NDArray[np.bool_]:
    """`(num_boxes,)`: whether each of `(num_boxes, 4)` boxes has a pixel in common with the box."""
    return np.all((others[:, :2] < box[2:]) & (others[:, 2:] > box[:2]), axis=1)


def _points_along(ax: Any, lines: Sequence[Floats]) -> Floats:
    """`(num_pixels, 2)` along the lines, near enough to each other that no name fits between."""
    dots = [np.zeros((0, 2))]
    for line in lines:
        corners = ax.transData.transform(line) if len(line) else np.zeros((0, 2))
        for start, end in pairwise(corners):
            steps = int(np.hypot(*(end - start)) / 3) + 2
            dots.append(start + np.linspace(0, 1, steps)[:, None] * (end - start))
    return np.concatenate(dots)


def _grow(ax: Any, boxes: Sequence[Box]) -> bool:
    """Moves the limits of the axes so far that they hold the boxes; whether they did not yet."""
    frame, margin = ax.bbox.extents, 2.0
    low = np.min([box[:2] for box in boxes], axis=0, initial=np.inf) - margin
    high = np.max([box[2:] for box in boxes], axis=0, initial=-np.inf) + margin
    low, high = np.minimum(low, frame[:2]), np.maximum(high, frame[2:])
    if (low == frame[:2]).all() and (high == frame[2:]).all():
        return False
    # Both axes by one factor: the picture keeps its shape.
    size, half = frame[2:] - frame[:2], (frame[2:] - frame[:2]) / 2
    half *= ((high - low) / size).max()
    low, high = (low + high) / 2 - half, (low + high) / 2 + half
    (left, bottom), (right, top) = ax.transData.inverted().transform([low, high])
    ax.set(xlim=(left, right), ylim=(bottom, top))
    return True


def element_names(example: Example) -> list[str]:
    """The first text of each element that is not a feature; empty if elements have no names."""
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
    """One for each of d features; none where they have no names, or a category is several."""
    if example.table is not None:
        header = example.table.header
        names = [] if header is None else [header[k] for k in example.table.numeric]
    else:
        fields: Mapping[str, Any] = example.elements[0] if example.elements else {}
        names = [name for name, value in fields.items() if isinstance(value, Real)]
    return names if len(names) == example.inputs.shape[1] else []
