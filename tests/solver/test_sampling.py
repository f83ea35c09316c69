"""Sampled answers have the policy's log-probabilities, with its gradient."""

from itertools import permutations

import numpy as np
import pytest
import torch

from ptrnet.decoding.log_probs import sequence_log_probs
from ptrnet.errors import InputError
from ptrnet.views import canonicalize_valid


def test_every_tour_once_sums_to_one_at_any_temperature(small):
    solver = small("tsp", scale=4.0)
    inputs = torch.from_numpy(np.random.default_rng(0).random((1, 4, 2))).float()
    tours = [[0, *rest] for rest in permutations([1, 2, 3])]
    tokens = torch.tensor([[[*(c + 1 for c in t), 0] for t in tours]])
    for temperature in (0.5, 1.0, 3.0):
        log_probs = sequence_log_probs(
            solver.model,
            inputs,
            torch.tensor([4]),
            tokens,
            torch.full((1, 6), 5),
            torch.tensor([4]),
            solver.task,
            temperature,
        )
        assert log_probs.constrained.exp().sum().item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("constrained", [True, False])
def test_frequencies_are_the_probabilities(small, constrained):
    solver = small("sort", scale=6.0)
    points = np.array([0.3, 0.1, 0.7])
    answers, log_probs = solver.sample(
        points, 6000, temperature=1.5, constrained=constrained, seed=1
    )
    by_answer = {}
    for answer, log_prob in zip(answers[0], log_probs[0].tolist(), strict=True):
        by_answer.setdefault(tuple(answer), [log_prob, 0])[1] += 1
    assert len(by_answer) > 3
    for log_prob, count in by_answer.values():
        p = np.exp(log_prob)
        assert abs(count / 6000 - p) < 4.5 * (p * (1 - p) / 6000) ** 0.5
    if constrained:
        assert all(sorted(answer) == [0, 1, 2] for answer in by_answer)


def test_answers_are_of_the_instances_own_order(small):
    """Also if the task shows the model another order of the elements."""
    solver = small("hull", order="hilbert")
    points = np.random.default_rng(3).random((2, 7, 2))
    answers, log_probs = solver.sample(points, 5, seed=4)
    assert log_probs.shape == (2, 5) and log_probs.requires_grad
    for rows, instance in zip(answers, points, strict=True):
        for answer in rows:
            assert solver.task.answer_error(len(instance), answer) is None
    # At a very low temperature the sample is the greedy answer.
    cold, _ = solver.sample(points, 1, temperature=1e-6, seed=0)
    for row, instance in zip(cold, points, strict=True):
        canonical = canonicalize_valid(solver.task, instance, row[0])
        assert canonical.tolist() == solver.solve(instance).tolist()


def test_a_reinforce_loop_of_the_user_learns(small):
    """REINFORCE in five lines makes the sum of the first two numbers smaller."""
    solver = small("sort")
    optimizer = torch.optim.Adam(solver.model.parameters(), 0.02)
    points, means = np.random.default_rng(0).random((24, 4, 1)), []
    for step in range(20):
        answers, log_probs = solver.sample(points, 6, seed=step)
        costs = torch.tensor(
            [[x[a[:2]].sum() for a in row] for x, row in zip(points, answers, strict=True)]
        )
        loss = ((costs - costs.mean(1, keepdim=True)) * log_probs).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        means.append(costs.mean().item())
    assert np.mean(means[-3:]) < np.mean(means[:3]) - 0.1


@pytest.mark.parametrize("seed", ["a", -1, 0.5])
def test_invalid_seeds_are_refused(small, seed):
    with pytest.raises(InputError, match="seed: expected a whole number of 0 or more"):
        small().sample(np.random.default_rng(0).random((4, 2)), seed=seed)
