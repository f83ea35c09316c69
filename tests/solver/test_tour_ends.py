"""Tours with given ends, and open tours, by networks and algorithms."""

import functools
import json

import numpy as np
import pytest

import ptrnet
from ptrnet import labellers, tasks
from ptrnet.cli import run
from ptrnet.data import formats
from ptrnet.decoding.reconstruct import Reconstruct
from ptrnet.errors import InputError
from ptrnet.metrics.tour import length
from ptrnet.tasks.base import with_ends
from ptrnet.tasks.tsp.ends import obey
from ptrnet.types import Dataset, Ends, Example, Nodes, TourRules

TSP = tasks.get("tsp")
N = 12
POINTS = np.random.default_rng(0).random((6, N, 2))
ENDS = [
    Ends(3, 7),
    Ends(3, 7, True),
    Ends(4),
    Ends(None, 4),
    Ends(is_open=True),
    Ends(5, None, True),
    Ends(None, 5, True),
]


@pytest.fixture(scope="module")
def solver():
    return ptrnet.load("tsp")


def examples(ends, points=POINTS):
    rows = [Example(inputs, source=f"row {k}") for k, inputs in enumerate(points)]
    return Dataset.of(with_ends(rows, TSP, ends))


@functools.cache
def best_tours(ends):
    return [
        ptrnet.label("tsp", inputs, start=ends.start, end=ends.end, open=ends.is_open)
        for inputs in POINTS[:3]
    ]


def test_tours_of_a_long_table_obey_the_ends(solver, tmp_path):
    rows = [f"{k},{x},{y}" for k, tour in enumerate(POINTS[:2]) for x, y in tour]
    (tmp_path / "t.csv").write_text("\n".join(["tour,x,y", *rows, ""]))
    words = ["--set-id", "tour", "--start", "3", "--end", "7"]
    words += ["--output", str(tmp_path / "out.csv")]
    assert run(["solve", "tsp", str(tmp_path / "t.csv"), *words]) == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    ranks = [int(line.rpartition(",")[2]) for line in lines[1:]]
    for of_tour in (ranks[:N], ranks[N:]):
        assert sorted(of_tour) == list(range(1, N + 1))
        assert of_tour[3] == 1 and of_tour[7] == N


@pytest.mark.parametrize(
    ("ends", "options"),
    [
        *((ends, {}) for ends in ENDS),
        (Ends(3, 7), {"decoder": ptrnet.Beam(3)}),
        (Ends(None, 5, True), {"decoder": ptrnet.Beam(3)}),
        (Ends(4), {"augment": 3}),
        (Ends(is_open=True), {"augment": 3}),
    ],
)
def test_networks_answer_with_the_ends_that_are_asked_for(solver, ends, options):
    solved = solver.predict(examples(ends, POINTS[:3]), **options)
    for row, inputs, best in zip(solved, POINTS, best_tours(ends), strict=False):
        assert sorted(row.outputs) == list(range(N))
        assert ends.start in (None, row.outputs[0]) and ends.end in (None, row.outputs[-1])
        shortest = length(inputs, best.outputs, is_open=ends.is_open)
        assert best.rules == row.rules == TourRules(*ends)
        assert shortest * (1 - 1e-9) <= length(inputs, row.outputs, is_open=ends.is_open)
        assert length(inputs, row.outputs, is_open=ends.is_open) <= 1.1 * shortest


def test_an_answer_with_ends_does_not_depend_on_its_batch(solver):
    ends = examples(Ends(3, 7), POINTS[:3])
    together = solver.predict(Dataset.of([*ends, *examples(Ends(), POINTS[:2])]))
    for row, example in zip(together, ends, strict=False):
        assert row.outputs.tolist() == solver.predict([example])[0].outputs.tolist()
    for row, inputs in zip(list(together)[len(ends) :], POINTS, strict=False):
        assert row.outputs.tolist() == solver.solve(inputs).tolist()


@pytest.mark.parametrize("ends", [Ends(is_open=True), Ends(4, None, True), Ends(None, 4, True)])
def test_a_closed_tour_is_cut_where_the_path_is_shortest(ends):
    inputs = POINTS[0]
    (example,) = examples(ends, POINTS[:1])
    closed = labellers.label(TSP, POINTS[:1])[0]
    for tour in (np.roll(closed, k) for k in range(N)):
        path = obey(example, tour)
        turned = [np.roll(way, k) for way in (tour, tour[::-1]) for k in range(N)]
        fit = [
            length(inputs, way, is_open=True)
            for way in turned
            if ends.start in (None, way[0]) and ends.end in (None, way[-1])
        ]
        assert length(inputs, path, is_open=True) == pytest.approx(min(fit))
        assert ends.start in (None, path[0]) and ends.end in (None, path[-1])


def test_invalid_ends_are_refused(solver, tmp_path):
    hull = Example(POINTS[0])
    for call, message in (
        (lambda: list(with_ends([hull], tasks.get("hull"), Ends(1))), "need task tsp, got"),
        (lambda: examples(Ends(20)), f"row 0: start: expected 0 to {N - 1}, got 20"),
        (lambda: examples(Ends(2, 2)), "row 0: end: expected another city than start, got 2"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    path = tmp_path / "a.txt"
    formats.write(str(path), [Example(POINTS[0])], TSP)
    for options, message in (
        ({"constrained": False}, "need constrained decoding"),
        ({"decoder": Reconstruct(rounds=1)}, "reconstruct decoding does not keep both ends"),
    ):
        with pytest.raises(InputError, match=message):
            solver.solve_file(path, tmp_path / "b.txt", start=1, end=2, **options)
    assert [*tmp_path.iterdir()] == [path]


def test_ends_are_named_by_the_ids_of_a_file():
    example = Example(POINTS[0][:4], nodes=Nodes("a", [10, 20, 30, 40]), source="a.tsp")
    (row,) = with_ends([example], TSP, Ends(30, 10, True))
    assert row.rules == TourRules(2, 0, True)
    with pytest.raises(InputError, match=r"a.tsp: start: expected an id of the file, got 2"):
        list(with_ends([example], TSP, Ends(2)))


def test_fixed_edges_of_a_file_and_ends_agree_or_are_refused():
    example = Example(POINTS[0][:5], source="a.tsp", rules=TourRules(fixed=((0, 1), (0, 2))))
    (row,) = with_ends([example], TSP, Ends(3, is_open=True))
    assert row.rules.fixed == ((0, 1), (0, 2))
    with pytest.raises(InputError, match="no tour obeys the fixed edges: more than two edges at 0"):
        list(with_ends([example], TSP, Ends(0, is_open=True)))


@pytest.mark.parametrize("extension", ["jsonl", "parquet"])
def test_files_say_that_a_path_is_open(tmp_path, extension):
    path = tmp_path / f"a.{extension}"
    ptrnet.label("tsp", POINTS[:2], output=path, open=True)
    rows = list(formats.read(str(path), TSP))
    assert [row.rules for row in rows] == [TourRules(is_open=True)] * 2
    paths = ptrnet.label("tsp", POINTS[:2], open=True)
    assert [row.outputs.tolist() for row in rows] == [row.outputs.tolist() for row in paths]
    if extension == "jsonl":
        assert json.loads(path.read_text().splitlines()[0])["open"] is True


@pytest.mark.parametrize("start", [None, 0])
def test_free_ends_of_paths_are_searched(solver, start):
    """Cutting a closed tour gives paths that are 3% (both ends free) to 5% (one end) too long.

    Moves of `improve` would shorten them, too.
    """
    points = np.random.default_rng(7).random((8, 10, 2))
    ends = Ends(start, None, True)
    gaps = [
        length(row.inputs, row.outputs, is_open=True)
        / length(row.inputs, best(row.inputs, start).outputs, is_open=True)
        - 1
        for row in solver.predict(examples(ends, points), improve=False)
    ]
    assert min(gaps) >= -1e-12 and np.mean(gaps) < 0.01


def best(inputs, start):
    return ptrnet.label("tsp", inputs, labeller="held-karp", start=start, open=True)
