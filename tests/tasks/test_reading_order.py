"""Pages: instances in all their forms, refusals, and the score."""

import numpy as np
import pytest

import ptrnet
from ptrnet import labellers, tasks
from ptrnet.data.dataset import instances_of
from ptrnet.errors import InputError
from ptrnet.metrics.ranking import score_orders
from ptrnet.types import Example

TASK = tasks.get("reading-order")
BOXES = [[55, 10, 95, 90], [5, 10, 45, 90], [5, 2, 95, 6]]


def test_labels_and_the_size_of_the_page_are_optional():
    for values in (BOXES, np.array(BOXES), {"boxes": BOXES}, {"boxes": BOXES, "page": [100, 100]}):
        data, is_one = instances_of(values, TASK)
        assert is_one
        np.testing.assert_array_equal(data.inputs(0), np.pad(BOXES, ((0, 0), (0, 1))))
    named = {"boxes": BOXES, "labels": ["text", None, "title"]}
    for labels in (named["labels"], np.array(named["labels"], object)):
        data, _ = instances_of({**named, "labels": labels}, TASK)
        assert data.inputs(0)[:, 4].tolist() == [1, 0, 3]


def test_columns_of_a_frame_are_found_by_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(BOXES, columns=["left", "top", "right", "bottom"])
    others = frame[["bottom", "top", "right", "left"]].assign(page=1, text="a", conf=0.5)
    for given in (frame, others, pandas.DataFrame(BOXES)):
        assert instances_of(given, TASK)[0].inputs(0)[:, :4].tolist() == BOXES
    with pytest.raises(InputError, match=r"expected the columns left, top, .* got 'x, y, width, h"):
        instances_of(pandas.DataFrame(BOXES, columns=["x", "y", "width", "height"]), TASK)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"boxes": BOXES, "labels": ["text", None, "tite"]}, "tite.*did you mean 'title'"),
        ({"boxes": BOXES, "labels": ["text"]}, '"labels": .*each of 3 boxes'),
        ({"boxes": [[3, 0, 1, 2]]}, "box 1: expected left <= right, got 3 and 1"),
        ({"boxes": [[0, 0, 1, 1], [0, 3, 1, 2]]}, "box 2: expected top <= bottom, got 3 and 2"),
        ({"boxes": []}, "at least one box"),
        ({"labels": ["text"]}, '"boxes"'),
        ([[0, 0, 1, 1, 17]], "label: expected a number from 0 to 16, got 17"),
        ([[0, 0, 1, np.nan]], "finite"),
        ([[0, 0, 1]], r"expected shape \(n, 5\)"),
    ],
)
def test_what_is_no_page_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        instances_of(values, TASK)


def test_drawn_pages_have_their_answer():
    data = ptrnet.generate("reading-order", n="1-12", count=40, seed=3)
    again = ptrnet.generate("reading-order", n="1-12", count=40, seed=3)
    shuffled = 0
    for (inputs, outputs), (other, same) in zip(data, again, strict=True):
        assert sorted(outputs) == list(range(len(inputs)))
        np.testing.assert_array_equal(inputs, other)
        np.testing.assert_array_equal(outputs, same)
        shuffled += outputs.tolist() != sorted(outputs)
    assert shuffled > 20


def levenshtein(a, b):
    """Return the edit distance by the recursive definition."""
    if not a or not b:
        return len(a) + len(b)
    return min(
        levenshtein(a[1:], b) + 1,
        levenshtein(a, b[1:]) + 1,
        levenshtein(a[1:], b[1:]) + (a[0] != b[0]),
    )


def test_the_edit_distance_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    for n in (1, 2, 4, 6):
        truth, answer = rng.permutation(n), rng.permutation(n)
        scores = score_orders([Example(np.zeros((n, 5)), truth)], [answer])
        expected = levenshtein(truth.tolist(), answer.tolist()) / n
        assert scores["edit_distance"].tolist() == [expected]
        assert scores["accuracy"].tolist() == [truth.tolist() == answer.tolist()]


@pytest.mark.parametrize("direction", ["rtl", "vertical"])
def test_drawn_pages_have_the_direction_of_the_task(direction):
    """The model reads a page of any direction as the same page from left to right."""
    turned = tasks.get("reading-order", direction=direction)
    drawn, expected = (task.sample(np.random.default_rng(2), 3, 8) for task in (turned, TASK))
    assert (drawn[..., :2] <= drawn[..., 2:4]).all()
    np.testing.assert_allclose(turned.normalize(drawn), TASK.normalize(expected), atol=1e-12)


@pytest.mark.parametrize("direction", ["rtl", "vertical"])
@pytest.mark.parametrize("labeller", TASK.facts.labellers)
def test_labellers_read_pages_in_the_direction_of_the_task(direction, labeller):
    """A rule orders a page of any direction as it orders the same page from left to right."""
    turned = tasks.get("reading-order", direction=direction)
    drawn, expected = (task.sample(np.random.default_rng(2), 3, 12) for task in (turned, TASK))
    answers, wanted = (
        labellers.label(turned, drawn, labeller),
        labellers.label(TASK, expected, labeller),
    )
    assert [list(order) for order in answers] == [list(order) for order in wanted]


@pytest.mark.parametrize("size", [1, 4])
def test_the_network_obeys_the_task_by_itself(size):
    """Without a constraint, every box comes once, and END comes last."""
    model = ptrnet.load("reading-order")
    pages = [TASK.sample(np.random.default_rng(3), 1, n)[0] for n in (1, 7, 20)]
    answers = model.solve(pages, ptrnet.Beam(size), constrained=False)
    assert [sorted(answer.tolist()) for answer in answers] == [list(range(n)) for n in (1, 7, 20)]
