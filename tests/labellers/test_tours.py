"""The labellers of tours against brute force and against each other."""

from itertools import permutations

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.errors import InputError
from ptrnet.geometry import distances
from ptrnet.labellers import exact, local_search
from ptrnet.labellers.exact import (
    EXCLUDED,
    best_penalties,
    cheapest_one_tree,
    resume,
    search_of,
    undecided,
)
from ptrnet.labellers.local_search import tour_by_pieces
from ptrnet.labels import label_dataset
from ptrnet.types import Example

NAMES = ("exact", "held-karp", "local-search")
ODD = {
    "one place": np.zeros((9, 2)),
    "a line": np.linspace(0, 1, 9)[:, None].repeat(2, 1),
    "twice each": np.random.default_rng(0).random((5, 2)).repeat(2, 0),
    "a grid": np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0)), -1).reshape(-1, 2),
    "far away": 1e6 + np.random.default_rng(1).random((9, 2)),
    "huge": 1e300 * np.random.default_rng(2).random((9, 2)),
    "tiny": 1e-300 * np.random.default_rng(3).random((9, 2)),
}


def lengths(inputs, tours, distance=distances.EUCLIDEAN):
    path = np.take_along_axis(inputs, np.stack(tours)[..., None], 1)
    return distances.between(path, np.roll(path, -1, 1), distance).sum(-1)


def best_of_all(inputs, distance=distances.EUCLIDEAN):
    """Return the length of the shortest order, by brute force."""
    n = inputs.shape[1]
    orders = np.array([(0, *rest) for rest in permutations(range(1, n))])
    dist = distances.matrix(inputs, distance)
    legs = dist[:, orders, np.roll(orders, -1, 1)]
    return legs.sum(-1).min(1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 13])
def test_every_answer_is_a_tour(name, n):
    inputs = np.random.default_rng(n).random((20, n, 2))
    tours = labellers.get(name)(inputs)
    assert (np.sort(tours, 1) == np.arange(n)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("odd", ODD)
def test_degenerate_cities_get_a_tour(name, odd):
    inputs = ODD[odd][None]
    with np.errstate(all="raise", under="ignore"):
        tours = labellers.get(name)(inputs)
    assert (np.sort(tours, 1) == np.arange(inputs.shape[1])).all()


@pytest.mark.parametrize("name", ["held-karp", "exact"])
@pytest.mark.parametrize("n", range(1, 9))
def test_exact_labellers_equal_brute_force(name, n):
    inputs = np.random.default_rng(n).random((200 if n < 8 else 40, n, 2))
    tours = labellers.get(name)(inputs)
    np.testing.assert_allclose(lengths(inputs, tours), best_of_all(inputs), rtol=1e-12)


@pytest.mark.parametrize("distance", distances.PLANAR[1:])
def test_whole_distances_equal_brute_force(distance):
    inputs = np.random.default_rng(4).integers(0, 60, (60, 8, 2)).astype(float)
    for name in ("held-karp", "exact"):
        tours = labellers.get(name)(inputs, distance)
        assert (lengths(inputs, tours, distance) == best_of_all(inputs, distance)).all()


@pytest.mark.parametrize("odd", ["twice each", "a grid", "far away"])
def test_exact_finds_a_shortest_tour_among_ties(odd):
    inputs = ODD[odd][None, :8]
    tours = exact.label(inputs)
    np.testing.assert_allclose(lengths(inputs, tours), best_of_all(inputs), rtol=1e-12)


@pytest.mark.parametrize("distinct", [2, 4, 5, 9])
@pytest.mark.parametrize("n", [9, 10])
def test_equal_cities_get_shortest_tours(n, distinct):
    """Equal cities have distance 0. If rounding looked like a gain, moves would never end."""
    rng = np.random.default_rng(10 * n + distinct)
    spots = rng.random((25, distinct, 2))
    inputs = np.take_along_axis(spots, rng.integers(distinct, size=(25, n, 1)), 1)
    tours = {name: labellers.get(name)(inputs) for name in NAMES}
    best = lengths(inputs, tours["held-karp"])
    np.testing.assert_allclose(lengths(inputs, tours["exact"]), best, rtol=1e-9, atol=1e-12)
    for answers in tours.values():
        assert (np.sort(answers, 1) == np.arange(n)).all()


def test_a_city_that_occurs_twice_is_visited_twice():
    inputs = np.random.default_rng(11).random((300, 20, 2))
    inputs[:, 7] = inputs[:, 13]
    for name in ("exact", "local-search"):
        assert (np.sort(labellers.get(name)(inputs), 1) == np.arange(20)).all()


@pytest.mark.parametrize(("n", "count"), [(12, 100), (14, 15)])
def test_exact_equals_held_karp(n, count):
    inputs = np.random.default_rng(n).random((count, n, 2))
    exact_lengths, expected = (
        lengths(inputs, labellers.get(name)(inputs)) for name in ("exact", "held-karp")
    )
    np.testing.assert_allclose(exact_lengths, expected, rtol=1e-12)


def test_the_search_corrects_a_tour_that_is_not_the_shortest():
    """Local search nearly always finds the shortest tour, but the proof must not rely on it."""
    rng = np.random.default_rng(5)
    for n in (5, 8, 12, 25):
        inputs = rng.random((1, n, 2))
        best = lengths(inputs, exact.label(inputs))[0]
        dist, tour = distances.matrix(inputs[0]), rng.permutation(n)
        assert resume(search_of(dist, undecided(dist)), tour, 1e-10, 10**6)
        assert sorted(tour) == list(range(n))
        np.testing.assert_allclose(lengths(inputs, tour[None])[0], best, rtol=1e-9)


def test_every_tour_of_50_cities_is_proved():
    answers, proved = exact.label_with_proof(np.random.default_rng(6).random((12, 50, 2)))
    assert proved.all() and (np.sort(answers, 1) == np.arange(50)).all()


def test_a_search_stops_at_the_node_limit_and_can_be_resumed():
    n = 30
    inputs = np.random.default_rng(6).random((8, n, 2))
    tours = exact.label(inputs)
    most = 0
    for dist, tour in zip(distances.matrix(inputs), tours, strict=True):
        whole = search_of(dist, undecided(dist))
        assert resume(whole, tour.copy(), 1e-9, 10**6)
        nodes = whole.num_nodes[0]
        search, found = search_of(dist, undecided(dist)), tour.copy()
        for limit in range(1, nodes):  # one node at a time
            assert not resume(search, found, 1e-9, limit) and search.num_nodes[0] == limit
        assert resume(search, found, 1e-9, nodes) and (found == tour).all()
        most = max(most, nodes)
    assert most > 1


def grid(columns, rows):
    return np.stack(np.meshgrid(np.arange(columns * 1.0), np.arange(rows * 1.0)), -1).reshape(-1, 2)


def clusters(width):
    rng = np.random.default_rng(3)
    return np.concatenate([width * rng.random((12, 2)), 1 + width * rng.random((12, 2))])


@pytest.mark.parametrize(
    ("cities", "expected"),
    [
        (np.linspace(0, 1, 30)[:, None] * [[1 / 3, 1 / 7]], 2 * np.hypot(1 / 3, 1 / 7)),
        (np.repeat([[0.0, 0], [3, 0], [3, 4]], 10, 0), 12),
        (grid(6, 6), 36),
        (grid(5, 5), 24 + np.sqrt(2)),  # an odd number of cells takes one longer step
        (grid(7, 7), 48 + np.sqrt(2)),
        (grid(3, 9), 26 + np.sqrt(2)),
    ],
)
def test_structured_instances_are_proved(cities, expected, monkeypatch):
    """With the first search alone, this would take more than a minute."""
    monkeypatch.setattr(exact, "EASY", 10**6)
    answers, proved = exact.label_with_proof(cities[None])
    (tour,) = answers
    assert proved.all() and sorted(tour) == list(range(len(cities)))
    np.testing.assert_allclose(lengths(cities[None], tour[None]), expected, rtol=1e-12)


def test_equal_cities_are_solved_as_one(monkeypatch):
    """The length equals that of the distinct cities, by dynamic programming."""
    monkeypatch.setattr(exact, "EASY", 1)
    distinct = np.random.default_rng(1).random((10, 2))
    inputs = distinct[np.random.default_rng(2).permutation(np.repeat(np.arange(10), 5))][None]
    answers, proved = exact.label_with_proof(inputs)
    best = lengths(distinct[None], labellers.get("held-karp")(distinct[None]))
    assert proved.all() and sorted(answers[0]) == list(range(50))
    np.testing.assert_allclose(lengths(inputs, answers), best, rtol=1e-12)


@pytest.mark.parametrize("distance", distances.PLANAR[1:])
def test_equal_cities_with_whole_distances_are_proved(distance, monkeypatch):
    """With rounded distances a detour may be shorter, so equal cities need not be neighbours."""
    monkeypatch.setattr(exact, "EASY", 1)
    inputs = np.random.default_rng(4).integers(0, 5, (30, 8, 2)) * 0.4
    answers, proved = exact.label_with_proof(inputs, distance)
    assert proved.all()
    best = best_of_all(inputs, distance)
    assert (lengths(inputs, answers, distance) == best).all()


@pytest.mark.parametrize("width", [1e-2, 1e-6])
def test_two_clusters_are_proved(width):
    """The oracle joins the best paths inside each cluster in every way, by dynamic programming."""
    points = clusters(width)[None, 6:18]
    answers, proved = exact.label_with_proof(points)
    best = lengths(points, labellers.get("held-karp")(points))
    assert proved.all()
    np.testing.assert_allclose(lengths(points, answers), best, rtol=1e-10)
    assert exact.label_with_proof(clusters(width)[None])[1].all()


def test_the_relaxation_bounds_every_tour():
    """The dual's penalties give a 1-tree bound equal to the optimum; on a grid, to the length."""
    for points in (grid(5, 5), grid(4, 6), np.random.default_rng(5).random((20, 2))):
        dist = distances.matrix(points)
        best = lengths(points[None], exact.label(points[None]))[0]
        cost = dist + np.diag(np.full(len(dist), EXCLUDED))
        bound = cheapest_one_tree(search_of(dist, cost), best_penalties(dist, cost))
        assert 0.97 * best < bound <= best * (1 + 1e-12)
        if len(points) != 20:
            assert bound == pytest.approx(best, rel=1e-10)


def test_an_answer_without_proof_is_the_best_that_was_found(monkeypatch):
    monkeypatch.setattr(exact, "WORK", 1)
    rng = np.random.default_rng(6)
    sizes = [25, 5, 25, 5]  # dynamic programming proves tours of five cities
    examples = [Example(rng.random((n, 2)), source=f"line {k}") for k, n in enumerate(sizes, 1)]
    examples[1] = examples[1].replace(extra={"proved": False, "name": "of a former answer"})
    task = tasks.get("tsp")
    labelled = label_dataset(task, "exact", examples)
    for example, n in zip(labelled, sizes, strict=True):
        assert sorted(example.outputs) == list(range(n))
        assert example.extra.get("proved", True) == (n == 5)
    assert labelled[1].extra == {"name": "of a former answer"}
    with pytest.raises(InputError, match=r"line 1: no tour was proved .* local-search"):
        label_dataset(task, "exact", examples, strict=True)


def test_local_search_is_near_the_shortest():
    inputs = np.random.default_rng(7).random((40, 50, 2))
    best = lengths(inputs, exact.label(inputs))
    local = lengths(inputs, labellers.get("local-search")(inputs))
    assert (local / best - 1).mean() < 0.001 and (local >= best * (1 - 1e-12)).all()


def test_local_search_is_within_its_gap_for_a_thousand_cities():
    """The shortest has about 0.7313 sqrt(n) in the unit square (Johnson and McGeoch 1996)."""
    inputs = np.random.default_rng(8).random((3, 1000, 2))
    local = lengths(inputs, labellers.get("local-search")(inputs))
    assert local.mean() < 1.04 * 0.7313 * np.sqrt(1000)


def columns(seed, count=20, size=50):
    """Return columns of cities at distance 1, and a tour: up one column and down the next."""
    rng = np.random.default_rng(seed)
    x = 8 * count * np.sort(rng.random(count)).repeat(size)
    y = rng.integers(0, size, count).repeat(size) + np.tile(np.arange(size), count)
    tour = np.arange(count * size).reshape(count, size)
    tour[1::2] = tour[1::2, ::-1]
    return np.stack([x, y], 1), tour.ravel()


@pytest.mark.parametrize("distance", ["euclidean", "EXPLICIT"])
def test_local_search_leaves_columns_of_many_cities_at_the_right_places(distance):
    """Lists of only the nearest cities give tours that are a tenth longer than these."""
    ratios = []
    for seed in range(4):
        points, tour = columns(seed)
        order = np.random.default_rng(seed).permutation(len(points))
        inputs = points[order][None]
        dist = distances.matrix(inputs)
        cities = labellers.get("local-search")(dist if distance == "EXPLICIT" else inputs, distance)
        ratios.append(lengths(inputs, cities)[0] / lengths(points[None], tour[None])[0])
    assert np.mean(ratios) < 0.9


def test_near_cities_are_in_several_columns():
    points, _ = columns(5)
    near = local_search.near_cities(distances.matrix(points))
    others = (points[near][..., 0] != points[:, None, 0]).sum(1)
    assert (others >= 1).all() and others.mean() > 3
    dist = np.take_along_axis(distances.matrix(points), near, 1)
    assert (np.diff(dist) >= 0).all() and all(len(set(row)) == len(row) for row in near.tolist())


@pytest.mark.parametrize("distance", ["EUC_2D", "GEO"])
def test_search_by_pieces_is_about_as_good_as_search_of_the_whole(distance, monkeypatch):
    monkeypatch.setattr(local_search, "PIECE", 500)
    inputs = np.random.default_rng(12).random((1, 1001, 2)) * 80
    tour = tour_by_pieces(inputs[0], distance, 6)
    assert (np.sort(tour) == np.arange(len(tour))).all()
    expected = lengths(inputs, labellers.get("local-search")(inputs, distance), distance)[0]
    assert lengths(inputs, tour[None], distance)[0] < 1.02 * expected


def test_local_search_works_without_a_matrix_of_distances(monkeypatch):
    """The shortest has about 0.7226 sqrt(n) (Johnson and McGeoch 1996). Some cities are equal."""
    monkeypatch.setattr(local_search, "MAX_MATRIX", 1000)
    inputs = np.random.default_rng(13).random((1, 3001, 2))
    inputs[:, 500:600] = inputs[:, :1]
    (tour,) = labellers.get("local-search")(inputs)
    assert (np.sort(tour) == np.arange(3001)).all()
    assert lengths(inputs, tour[None])[0] < 1.05 * 0.7226 * np.sqrt(3001)


@pytest.mark.parametrize("distance", ["MAX_3D", "EXPLICIT"])
def test_local_search_takes_any_number_of_points_in_space_and_rows_of_a_matrix(
    distance, monkeypatch
):
    monkeypatch.setattr(local_search, "MAX_MATRIX", 30)
    monkeypatch.setattr(local_search, "PIECE", 30)
    points = np.random.default_rng(14).random((1, 60, 3)) * 100
    inputs = distances.matrix(points, "MAX_3D") if distance == "EXPLICIT" else points
    tours = labellers.get("local-search")(inputs, distance)
    assert (np.sort(tours[0]) == np.arange(60)).all()
    best = lengths(points, exact.label(points, "MAX_3D"), "MAX_3D")
    assert lengths(points, tours, "MAX_3D") <= 1.05 * best


def test_an_answer_does_not_depend_on_the_batch():
    inputs = np.random.default_rng(9).random((5, 30, 2))
    for name in NAMES:
        if labellers.max_elements(name) >= 30:
            tours = labellers.get(name)(inputs)
            assert (labellers.get(name)(inputs[3:4])[0] == tours[3]).all()


def test_held_karp_can_be_interrupted_between_instances(monkeypatch):
    """An interrupt waits for the current compiled call: at most one tour of 20 cities."""
    from ptrnet.labellers import held_karp

    calls = []
    monkeypatch.setattr(
        held_karp, "shortest_tour", lambda dist: calls.append(dist.shape) or np.arange(len(dist))
    )
    held_karp.label(np.random.default_rng(0).random((3, 20, 2)))
    assert calls == 3 * [(20, 20)]
