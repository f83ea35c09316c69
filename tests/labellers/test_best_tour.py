"""Tours of the most prizes, against every tour."""

import math
from itertools import pairwise, permutations

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.types import Example


def length(points, path):
    return sum(math.dist(points[a], points[b]) for a, b in pairwise(path))


@pytest.mark.parametrize("limit", [0.3, 1.2, 1.8])
def test_no_tour_by_brute_force_collects_more_prizes(limit):
    task = tasks.get("orienteering", limit=limit)
    inputs = task.sample(np.random.default_rng(0), 8, 7)
    for instance, answer in zip(inputs, labellers.label(task, inputs), strict=True):
        points, prize = instance[:, :2].tolist(), instance[:, 2]
        best = max(
            sum(prize[k] for k in tour)
            for m in range(7)
            for tour in permutations(range(1, 7), m)
            if length(points, [0, *tour, 0]) <= limit
        )
        assert task.costs(Example(instance), [answer])[0] == pytest.approx(-best, rel=1e-12)
        if len(answer):  # from the end that is nearer to the depot
            assert length(points, [0, answer[0]]) <= length(points, [0, answer[-1]])
