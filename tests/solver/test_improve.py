"""Improved answers of tours and routes: `Task.improve`, `improve=`, `--improve`."""

from itertools import combinations, pairwise, permutations

import numpy as np
import pytest

import ptrnet
from ptrnet import tasks
from ptrnet.tasks.tsp.ends import obey
from ptrnet.types import Example, TourRules

PROBLEMS = ("cvrp", "orienteering")
RULES = [
    TourRules(None, None, False),
    TourRules(2, None, False),
    TourRules(None, 3, False),
    TourRules(1, 4, False),
    TourRules(None, None, True),
    TourRules(2, None, True),
    TourRules(None, 3, True),
    TourRules(1, 4, True),
]


def random_answer(task, inputs, rng):
    """Choose random allowed elements until the answer ends."""
    state, choices = task.problem.start(inputs[None]), []
    while (allowed := task.problem.allowed(state).reshape(-1)).any():
        choices.append(rng.choice(np.flatnonzero(allowed)))
        state = task.problem.step(state, np.array(choices[-1:]))
    return task.from_tokens(np.array(choices, np.int64) + task.facts.num_specials)


def cost(task, example, outputs):
    return float(task.costs(example, [outputs])[0])


@pytest.mark.parametrize("rounded", [0, 1])
@pytest.mark.parametrize("n", [2, 3, 6, 21])
@pytest.mark.parametrize("name", PROBLEMS)
def test_improved_answers_of_problems_are_valid_and_cost_no_more(name, n, rounded):
    task, rng = tasks.get(name, points="mixed"), np.random.default_rng(n)
    gains = []
    for inputs in task.sample(rng, 20, n):
        if rounded:  # ten units across, so that rounding matters
            inputs[:, :2] *= 10
            inputs[:, 3] *= 10 if name == "orienteering" else 1
            inputs[:, 4] = 1
        example, answer = Example(inputs), random_answer(task, inputs, rng)
        better = task.facts.improve(example, answer)
        assert task.problem.answer_errors(inputs, [better]) == [None]
        gains.append(cost(task, example, answer) - cost(task, example, better))
        again = task.facts.improve(example, better)
        assert cost(task, example, again) == pytest.approx(cost(task, example, better))
    assert min(gains) >= -1e-9
    assert n < 6 or max(gains) > 0


def test_improved_routes_are_often_the_best_of_all():
    """Six customers, vehicles of three: compare with all ways to cut all orders into two routes."""
    task, rng = tasks.get("cvrp"), np.random.default_rng(5)
    gaps = []
    for _ in range(10):
        position = rng.random((1, 7, 2))
        inputs = task.problem.pack(
            position=position, demand=[[0, *[1] * 6]], capacity=[3], rounded=[0]
        )[0]
        example = Example(inputs)
        answers = [np.array([*p[:3], 0, *p[3:]]) for p in permutations(range(1, 7))]
        best = task.costs(example, answers).min()
        gaps.append(cost(task, example, task.facts.improve(example, answers[0])) / best - 1)
    assert np.min(gaps) >= -1e-9
    assert np.median(gaps) < 1e-9 and np.mean(gaps) < 0.02


def turn(a, b, c):
    """Return 1 if c is left of the line from a to b, -1 if it is right of it."""
    return np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def crosses(points, tour):
    """Whether two edges of a tour properly intersect."""
    edges = list(pairwise([*tour, tour[0]]))
    for (a, b), (c, d) in combinations(edges, 2):
        if len({a, b, c, d}) == 4:
            p = points[[a, b, c, d]]
            apart = turn(p[0], p[1], p[2]) != turn(p[0], p[1], p[3])
            if apart and turn(p[2], p[3], p[0]) != turn(p[2], p[3], p[1]):
                return True
    return False


@pytest.mark.parametrize("n", [5, 9, 40])
def test_improved_tours_do_not_cross_themselves(n):
    task, rng = tasks.get("tsp"), np.random.default_rng(n)
    for points in rng.random((10, n, 2)):
        answer = rng.permutation(n)
        better = task.facts.improve(Example(points), answer)
        assert sorted(better) == list(range(n))
        assert not crosses(points, better)
        assert cost(task, Example(points), better) <= cost(task, Example(points), answer)


@pytest.mark.parametrize("distance", ["euclidean", "EUC_2D", "CEIL_2D", "ATT", "GEO"])
@pytest.mark.parametrize("rules", RULES)
def test_improved_tours_obey_their_rules_in_the_distances_of_the_file(rules, distance):
    task, rng = tasks.get("tsp"), np.random.default_rng(7)
    for n in (5, 12):
        points = rng.random((n, 2)) * 80
        example = Example(points).replace(distance=distance, rules=rules)
        answer = obey(example, rng.permutation(n))
        better = task.facts.improve(example, answer)
        assert sorted(better) == list(range(n))
        assert rules.start in (None, better[0]) and rules.end in (None, better[-1])
        assert cost(task, example, better) <= cost(task, example, answer) + 1e-9
    if distance == "euclidean":  # with five cities, the best tour of all
        points = rng.random((5, 2))
        example = Example(points).replace(rules=rules)
        orders = [
            np.array(p)
            for p in permutations(range(5))
            if rules.start in (None, p[0]) and rules.end in (None, p[-1])
        ]
        best = task.costs(example, orders).min()
        assert cost(task, example, task.facts.improve(example, orders[-1])) == pytest.approx(best)


def test_solvers_improve_tours_by_default_whatever_the_batch(small):
    solver = small("tsp")
    points = np.random.default_rng(1).random((6, 15, 2))
    alone = [solver.solve(p) for p in points]
    together = solver.solve(list(points[::-1]))[::-1]
    plain = solver.solve(list(points), improve=False)
    for p, one, same, network in zip(points, alone, together, plain, strict=True):
        assert one.tolist() == same.tolist()
        expected = solver.task.facts.improve(Example(p), network)
        assert one.tolist() == expected.tolist()
        assert not crosses(p, one)
    known = [Example(p, a) for p, a in zip(points, plain, strict=True)]
    assert solver.evaluate(known, improve=False)["gap"]["value"] == pytest.approx(0)
    assert solver.evaluate(known)["gap"]["value"] < -0.1


def test_other_answers_stay_as_they_are():
    model = ptrnet.load("hull")
    points = np.random.default_rng(1).random((30, 2))
    assert model.solve(points).tolist() == model.solve(points, improve=False).tolist()
