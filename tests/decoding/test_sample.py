"""Sampling against the model's own probabilities of every sequence."""

from itertools import product

import numpy as np
import pytest
import torch

from ptrnet.constraints import Permutation, Subset
from ptrnet.decoding import Greedy, Sample
from ptrnet.errors import InputError
from ptrnet.metrics.tour import length

N = 3


def probabilities(model, points):
    """Return the probability of every answer of one or two tokens, by enumeration."""
    probability = {}
    for sequence in product(range(1, N + 1), repeat=2):
        targets = torch.tensor([[*sequence, 0]])
        with torch.no_grad():
            rows = model.log_probs(points, None, targets)[0].exp()
        first = rows[0, 1:] / rows[0, 1:].sum()  # an answer has at least one token
        probability[sequence] = float(first[sequence[0] - 1] * rows[1, sequence[1]])
        probability[sequence[:1]] = float(first[sequence[0] - 1] * rows[1, 0])
    return probability


def test_frequencies_of_answers_follow_the_models_probabilities(small):
    solver = small(seed=3, scale=8.0)
    points, count = torch.rand(1, N, 2), 40_000
    hypotheses = Sample(count, seed=5).decode(
        solver.model, points, torch.tensor([N]), torch.tensor([2])
    )
    expected = probabilities(solver.model, points)
    assert sum(expected.values()) == pytest.approx(1, abs=1e-5)
    seen = {}
    for tokens, end in zip(
        hypotheses.tokens[0].tolist(), hypotheses.lengths[0].tolist(), strict=True
    ):
        seen[tuple(tokens[:end])] = seen.get(tuple(tokens[:end]), 0) + 1
    assert set(seen) <= set(expected)
    # Pearson's chi-square with one degree of freedom less than answers: its mean is `free`, its
    # standard deviation sqrt(2 free). The seed is fixed, so four deviations are a generous bound.
    off = sum((seen.get(s, 0) - count * p) ** 2 / (count * p) for s, p in expected.items())
    free = len(expected) - 1
    assert off < free + 4 * (2 * free) ** 0.5


def test_samples_are_sorted_by_the_models_own_log_probabilities(small):
    solver = small(scale=8.0)
    points, n = torch.rand(4, 5, 2), torch.full((4,), 5)
    hypotheses = Sample(6, seed=0).decode(solver.model, points, n, n, Subset())
    assert (hypotheses.log_probs.diff(dim=1) <= 0).all()
    for b in range(4):
        for k in range(6):
            tokens = hypotheses.tokens[b, k, : hypotheses.lengths[b, k]].tolist()
            targets = torch.tensor([[*tokens, 0]])
            with torch.no_grad():
                rows = solver.model.log_probs(points[b : b + 1], None, targets)[0]
            likely = float(rows.gather(1, targets[0][:, None]).sum())
            assert float(hypotheses.log_probs[b, k]) == pytest.approx(likely, abs=1e-4)


def test_sampling_near_temperature_0_equals_greedy(small):
    solver = small(scale=8.0)
    points, n = torch.rand(20, 6, 2), torch.full((20,), 6)
    cold = Sample(2, temperature=1e-6, seed=0).decode(solver.model, points, n, n, Permutation())
    greedy = Greedy().decode(solver.model, points, n, n, Permutation())
    assert torch.equal(cold.tokens[:, 0], greedy.tokens[:, 0])


def test_draws_depend_on_the_seed_and_the_instance_alone(small):
    solver = small(scale=2.0)  # small weights, so that many answers are about equally likely
    instances = list(np.random.default_rng(0).random((3, 9, 2)))
    one = [a.tolist() for a in solver.solve(instances, Sample(1, seed=1))]
    again = [a.tolist() for a in solver.solve([*instances[::-1], instances[0]], Sample(1, seed=1))]
    assert again == [*one[::-1], one[0]]
    assert one != [a.tolist() for a in solver.solve(instances, Sample(1, seed=2))]
    points, n = torch.rand(1, 9, 2), torch.tensor([9])
    rows = Sample(50, seed=0).decode(solver.model, points, n, n, Permutation()).tokens[0].tolist()
    assert len(set(map(tuple, rows))) == 50


def test_solve_takes_the_shortest_of_the_sampled_tours(small):
    solver = small("tsp", scale=2.0)
    points = np.random.default_rng(1).random((8, 2))
    one, many = (solver.solve(points, Sample(k, seed=0), improve=False) for k in (1, 200))
    assert length(points, many) < length(points, one)


@pytest.mark.parametrize(
    "odd", [{"seed": 10**30}, {"temperature": 1e-310}, {"temperature": 1e300}, {"seed": 2**63}]
)
def test_extreme_seeds_and_temperatures_still_give_tours(small, odd):
    solver = small("tsp", scale=8.0)
    for answer in solver.solve(
        list(np.random.default_rng(0).random((3, 7, 2))), Sample(3, **{"seed": 0, **odd})
    ):
        assert sorted(answer) == list(range(7))


@pytest.mark.parametrize(
    "bad", [{"size": 0}, *({"temperature": value} for value in (0.0, float("inf"), "1"))]
)
def test_invalid_arguments_are_refused(bad):
    with pytest.raises(InputError):
        Sample(**bad)


def test_without_a_seed_each_call_draws_new_answers(small):
    solver = small("tsp")
    points = np.random.default_rng(0).random((9, 2))
    drawn = {tuple(solver.solve(points, Sample(1), improve=False)) for _ in range(20)}
    assert len(drawn) > 10
    assert (
        len({tuple(solver.solve(points, Sample(1, seed=3), improve=False)) for _ in range(5)}) == 1
    )
    torch.manual_seed(7)
    first = solver.solve(points, Sample(1), improve=False)
    torch.manual_seed(7)
    assert solver.solve(points, Sample(1), improve=False).tolist() == first.tolist()
