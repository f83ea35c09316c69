import numpy as np
import pytest
import torch

from ptrnet import label, labellers, tasks
from ptrnet.data import formats
from ptrnet.errors import AmbiguousInputWarning, InputError

POINTS = np.array([[0.9, 0.1], [0.1, 0.2], [0.5, 0.9], [0.5, 0.4], [0.9, 0.8]])
# By hand: increasing triples, from the leftmost incenter on.
TRIANGLES = [[1, 2, 3], [0, 1, 3], [2, 3, 4], [0, 3, 4]]
PLAIN, SEPARATED = tasks.get("delaunay"), tasks.get("delaunay", separator=True)


def test_triangles_are_sorted_by_incenters():
    (triangles,) = labellers.label(PLAIN, POINTS[None])
    assert triangles.tolist() == TRIANGLES
    mixed = np.array([t[::-1] for t in TRIANGLES[::-1]])
    assert PLAIN.canonicalize(POINTS[None], [mixed])[0].tolist() == TRIANGLES


def test_incenters_with_equal_x_are_sorted_by_y():
    points = np.array([[0.0, 0.0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]])
    (triangles,) = labellers.label(PLAIN, points[None])
    assert triangles.tolist() == [[0, 2, 4], [0, 1, 4], [2, 3, 4], [1, 3, 4]]


def test_padding_stays_last():
    both = np.stack([POINTS, POINTS + [[0, 0], [0, 0], [0, 0], [0, 0], [-0.45, -0.5]]])
    rows = labellers.label(PLAIN, both)
    for points, row in zip(both, rows, strict=True):
        assert labellers.label(PLAIN, points[None])[0].tolist() == row.tolist()


def test_tokens_with_and_without_separator():
    answers = labellers.label(PLAIN, POINTS[None])
    plain, separated = PLAIN.to_tokens(answers), SEPARATED.to_tokens(answers)
    assert plain[0].tolist() == [2, 3, 4, 1, 2, 4, 3, 4, 5, 1, 4, 5, 0]
    assert separated[0].tolist() == [3, 4, 5, 1, 2, 3, 5, 1, 4, 5, 6, 1, 2, 5, 6, 0]
    assert PLAIN.facts.num_specials == 1 and SEPARATED.facts.num_specials == 2


@pytest.mark.parametrize(
    ("task", "tokens", "expected"),
    [
        (PLAIN, [1, 2, 3, 1], [[0, 1, 2], [0, 0, 0]]),
        (PLAIN, [1, 2, 3, 1, 4], [[0, 1, 2], [0, 3, 3]]),
        (PLAIN, [1, 2, 3, 3, 2, 1], [[0, 1, 2], [2, 1, 0]]),
        (PLAIN, [1, 2, 3, 1, 2, 3], [[0, 1, 2]]),
        (PLAIN, [], []),
        (SEPARATED, [2, 3, 4, 1, 2, 3], [[0, 1, 2], [0, 1, 1]]),
        (SEPARATED, [2, 3, 1, 4, 5, 3, 2], [[0, 1, 1], [2, 3, 1], [0, 0, 0]]),
        (SEPARATED, [1, 1], []),
    ],
)
def test_incomplete_triangles_count_as_wrong(task, tokens, expected):
    """An unconstrained model may emit any tokens, and must not get credit for other triangles."""
    assert task.from_tokens(np.array(tokens, np.int64)).tolist() == expected


def test_collinear_points_have_no_triangulation():
    line = np.arange(5.0)[:, None] * [[1 / 3, 1 / 7]]
    assert PLAIN.instance_error(line) == "all points lie on one line: they have no triangulation"
    assert (
        PLAIN.instance_error(np.ones((4, 2)))
        and PLAIN.instance_error(line * 1e300)
        and PLAIN.instance_error(line * 1e-300)
    )
    assert (
        PLAIN.instance_error(POINTS * 1e-300) is None and PLAIN.instance_error(POINTS + 1e6) is None
    )


def test_nearly_collinear_whole_numbers_have_a_triangulation():
    assert PLAIN.instance_error(1e15 + np.array([[0.0, 0], [1, 1], [2, 1]])) is None
    assert PLAIN.instance_error(1e15 + np.array([[0.0, 0], [1, 1], [2, 2]]))


def test_invalid_answers_are_described():
    assert PLAIN.answer_error(5, np.array(TRIANGLES)) is None
    assert PLAIN.answer_error(5, np.array([[0, 1, 2], [1, 3, 1]]), 1) == (
        "triangle 2: expected three different vertices, got [2, 4, 2]"
    )
    assert PLAIN.answer_error(5, np.array([[0, 1, 2], [2, 1, 0]])) == (
        "expected each triangle once, got [0, 1, 2] twice"
    )
    assert PLAIN.answer_error(5, np.empty((0, 3), np.int64)) is not None


def test_settings_of_wrong_types_are_refused():
    with pytest.raises(InputError):
        tasks.get("delaunay", separator="yes")


@pytest.mark.parametrize("task", [PLAIN, SEPARATED], ids=["plain", "separator"])
def test_constraint_allows_only_complete_increasing_triples(task):
    """Check all sequences of up to 7 tokens over 4 points against a plain definition."""
    s, n = task.facts.num_specials, 4

    def legal(sequence):
        triples, rest = [], list(sequence)
        while rest:
            if task.separator and triples:
                if rest.pop(0) != 1:
                    return False
                if not rest:
                    return True  # a triple must follow
            triple, rest = rest[:3], rest[3:]
            if any(t < s for t in triple) or sorted(set(triple)) != triple:
                return False
            if triple[-1] > s + n - 1 - (3 - len(triple)):  # no room for the rest of the triple
                return False
            triples.append(triple)
        return True

    def walk(sequence, state):
        open_tokens = task.mask(state)[0, 0]
        for token in range(1, s + n):
            longer = [*sequence, token]
            assert bool(open_tokens[token]) == legal(longer), longer
            if open_tokens[token] and len(longer) < 7:
                parent = torch.zeros(1, 1, dtype=torch.int64)
                walk(longer, task.advance(state, parent, torch.tensor([[token]])))
        complete = len(sequence) % (4 if task.separator else 3) == (3 if task.separator else 0)
        assert bool(open_tokens[0]) == (complete and len(sequence) > 0), sequence

    walk([], task.begin(torch.zeros(1, n + 2, 2), torch.tensor([n])))


def test_warning_names_duplicates_that_no_triangle_uses(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("0,0\n1,0\n0,1\n1,0\n.3,.4\n")
    with pytest.warns(AmbiguousInputWarning, match=r"points.csv: elements 2 and 4 are equal; .*"):
        (example,) = formats.read(str(path), tasks.get("delaunay"))
    with pytest.warns(AmbiguousInputWarning, match=r"elements 2 and 4"):
        _, triangles = label("delaunay", example)
    assert 3 not in triangles and {0, 1, 2, 4} == {*triangles.ravel().tolist()}
