"""Names in a picture do not overlap, hide points or leave the frame."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.data import formats
from ptrnet.plots.answer import draw_answered, picture_size
from ptrnet.plots.figure import axes
from ptrnet.types import Example

CAPITALS = Path(__file__).parents[2] / "examples" / "capitals.csv"


def boxes(ax):
    ax.figure.draw_without_rendering()
    return {text.get_text(): text.get_window_extent() for text in ax.texts}


def check(ax, points):
    placed = boxes(ax)
    for a, b in combinations(placed.values(), 2):
        assert min(a.x1, b.x1) <= max(a.x0, b.x0) + 1 or min(a.y1, b.y1) <= max(a.y0, b.y0) + 1
    frame = ax.bbox
    for name, box in placed.items():
        assert frame.x0 - 1 <= box.x0 and box.x1 <= frame.x1 + 1, name
        assert frame.y0 - 1 <= box.y0 and box.y1 <= frame.y1 + 1, name
        for x, y in ax.transData.transform(points):
            assert not (box.x0 < x < box.x1 and box.y0 < y < box.y1), name
    return placed


def test_names_of_capitals_have_room(tmp_path):
    task = tasks.get("hull")
    (example,) = formats.read(str(CAPITALS), task)
    (outputs,) = labellers.label(task, example.inputs[None])
    answered = example.replace(outputs=outputs)
    with axes(tmp_path / "a.png", *picture_size(task, answered)) as ax:
        draw_answered(ax, task, answered, None)
        placed = check(ax, example.inputs)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("longitude", "latitude")
    names = [row[0] for row in example.table.rows]
    assert {names[i] for i in outputs} <= set(placed)
    assert len(placed) >= 40


@pytest.mark.parametrize("seed", range(3))
def test_names_without_room_are_left_out_and_those_of_the_answer_come_first(tmp_path, seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(50, 2)) ** 3 * [1, 1e-3]
    names = [f"element {'m' * rng.integers(1, 12)} {i}" for i in range(50)]
    example = Example(points, np.arange(5), elements=[{"name": name} for name in names])
    with axes(tmp_path / "a.svg") as ax:
        draw_answered(ax, tasks.get("hull"), example, None)
        placed = check(ax, points)
    assert 0 < len(placed) < 50


@pytest.mark.parametrize(
    "points", [np.zeros((1, 2)), np.zeros((4, 2)), np.array([[0.0, 0], [1e300, 0], [0, 1e-300]])]
)
def test_points_without_extent_are_drawn(tmp_path, points):
    elements = [{"name": name} for name in ("m" * 200, "b", "", "")[: len(points)]]
    with axes(tmp_path / "a.png") as ax:
        draw_answered(
            ax, tasks.get("hull"), Example(points, np.array([0]), elements=elements), None
        )
    assert (tmp_path / "a.png").exists()
