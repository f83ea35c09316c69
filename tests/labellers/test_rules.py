"""Compare tours with rules and directed distances with all orders, and `exact` with Held-Karp."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.labellers.rules import doubled, halved
from ptrnet.types import CLOSED, TourRules

TSP = tasks.get("tsp")
RULES = [
    CLOSED,
    TourRules(2),
    TourRules(None, 3),
    TourRules(1, 4),
    TourRules(is_open=True),
    TourRules(3, is_open=True),
    TourRules(None, 2, True),
    TourRules(5, 0, True),
    TourRules(fixed=((0, 3), (3, 5))),
    TourRules(1, None, True, ((0, 3), (4, 2))),
]
DIRECTED = pytest.mark.parametrize("directed", [False, True], ids=["symmetric", "directed"])


def distances(rng, n, directed, whole):
    """Draw distances: integers, many of them equal, or floats; some are negative."""
    dist = rng.integers(-2, 9, (n, n)).astype(float) if whole else rng.random((n, n)) * 100 - 20
    dist = dist if directed else np.triu(dist, 1) + np.triu(dist, 1).T
    np.fill_diagonal(dist, 0)
    return dist


def cost(dist, tour, rules):
    return dist[tour[:-1], tour[1:]].sum() + (0 if rules.is_open else dist[tour[-1], tour[0]])


def obeys(tour, rules, directed):
    edges = {*pairwise(tour)}
    edges |= set() if rules.is_open else {(tour[-1], tour[0])}
    edges |= set() if directed else {(j, i) for i, j in edges}
    ends = rules.start in (None, tour[0]) and rules.end in (None, tour[-1])
    return ends and edges.issuperset(rules.fixed)


@DIRECTED
@pytest.mark.parametrize("rules", RULES)
def test_tours_under_rules_equal_brute_force(rules, directed):
    rng = np.random.default_rng(0)
    for n, whole in ((6, True), (6, False), (8, True)):
        dist = distances(rng, n, directed, whole)
        orders = np.array([*permutations(range(n))])
        costs = dist[orders[:, :-1], orders[:, 1:]].sum(1)
        costs += 0 if rules.is_open else dist[orders[:, -1], orders[:, 0]]
        best = next(costs[k] for k in costs.argsort() if obeys(orders[k], rules, directed))
        for name in filter(labellers.takes_rules, TSP.facts.labellers):
            answers, proved = labellers.label_with_proof(TSP, dist[None], name, "EXPLICIT", rules)
            (tour,) = answers
            assert proved.all() and sorted(tour) == list(range(n)) and obeys(tour, rules, directed)
            assert cost(dist, tour, rules) == pytest.approx(best, abs=1e-9)


@DIRECTED
@pytest.mark.parametrize("rules", [CLOSED, RULES[-3], RULES[-1]])
@pytest.mark.parametrize("whole", [False, True])
def test_exact_equals_held_karp(rules, directed, whole):
    rng = np.random.default_rng(1)
    for n in (9, 13):
        dist = distances(rng, n, directed, whole)
        tours = {}
        for name in ("exact", "held-karp", "local-search"):
            answers, proved = labellers.label_with_proof(TSP, dist[None], name, "EXPLICIT", rules)
            (tours[name],) = answers
            assert proved.all() and obeys(tours[name], rules, directed)
        best = cost(dist, tours["held-karp"], rules)
        assert cost(dist, tours["exact"], rules) == pytest.approx(best, abs=1e-8)
        assert cost(dist, tours["local-search"], rules) >= best - 1e-8


def test_the_linear_program_proves_a_directed_tour(monkeypatch):
    """A search that gives up at once leaves no decision behind in the next one."""
    monkeypatch.setattr("ptrnet.labellers.exact.EASY", 30 * 60**2)
    rng = np.random.default_rng(2)
    points = rng.random((30, 2)) * 100
    dist = np.hypot(*np.moveaxis(points[:, None] - points, -1, 0)) * (
        1 + 0.3 * rng.random((30, 30))
    )
    dist = np.floor(dist) * (1 - np.eye(30))
    (tour,), proved = labellers.label_with_proof(TSP, dist[None], "exact", "EXPLICIT")[0], True
    good = labellers.get("local-search")(dist[None], "EXPLICIT")[0]
    assert proved and cost(dist, tour, CLOSED) <= cost(dist, good, CLOSED)


@pytest.mark.parametrize("rules", [TourRules(3), TourRules(None, 3)])
def test_a_closed_tour_with_a_start_is_the_canonical_one_rotated(rules):
    points = np.random.default_rng(3).random((1, 12, 2))
    (tour,) = labellers.label(TSP, points)
    answers, _ = labellers.label_with_proof(TSP, points, None, rules=rules)
    shift = int(np.argmax(tour == 3)) + (rules.end is not None)
    assert answers[0].tolist() == np.roll(tour, -shift).tolist()


def test_a_one_way_street_is_driven_in_its_direction():
    """Four corners of a one-way street. The other direction costs ten times as much."""
    dist = np.full((4, 4), 10.0)
    dist[[0, 2, 1, 3], [2, 1, 3, 0]] = 1
    for name in ("exact", "held-karp", "local-search"):
        answers, _ = labellers.label_with_proof(TSP, dist[None], name, "EXPLICIT")
        assert answers[0].tolist() == [0, 2, 1, 3]


def test_a_tour_of_doubled_cities_is_read_in_either_direction():
    tour = np.array([0, 3, 1, 2])
    for shift in range(8):
        for turned in (doubled(tour), doubled(tour)[::-1]):
            assert halved(np.roll(turned, shift)).tolist() == tour.tolist()
