"""Pairs of inputs and outputs where instances are asked for, and instances where pairs are."""

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet.errors import InputError

TASKS = ["hull", "delaunay", "tsp", "sort"]


def pairs(task, count=3):
    return ptrnet.generate(task, 6, count)


@pytest.mark.parametrize("task", TASKS)
def test_of_pairs_the_inputs_are_solved_and_labelled(small, task):
    solver, known = small(task), pairs(task)
    instances = [inputs for inputs, _ in known]
    for actual, expected in (
        (solver.solve(known), solver.solve(instances)),
        ([solver.solve(known[0])], [solver.solve(instances[0])]),
        (solver.solve([(torch.tensor(x), y.tolist()) for x, y in known]), solver.solve(instances)),
        ([y for _, y in ptrnet.label(task, known)], [y for _, y in known]),
        ([ptrnet.label(task, known[0])[1]], [known[0][1]]),
    ):
        assert [a.tolist() for a in actual] == [e.tolist() for e in expected]


def test_two_instances_in_a_tuple_are_no_pair(small):
    first, second = np.random.default_rng(0).random((2, 7, 2))
    answers = small().solve((first, second))
    assert [a.tolist() for a in answers] == [small().solve(x).tolist() for x in (first, second)]
    whole = small().solve(([[0, 0], [1, 0], [0, 2]], [[0, 1], [0, 0], [1, 1]]))
    assert len(whole) == 2
    numbers = small("sort").solve([(3.0, 1.0), (1.0, 2.0)])
    assert [len(answer) for answer in numbers] == [2, 2]
    beyond = small("sort").solve([([3], [5])])  # 5 is no index into [3]
    assert [len(answer) for answer in beyond] == [2]


@pytest.mark.parametrize("method", ["log_likelihoods", "evaluate"])
def test_instances_without_answers_are_named_as_such(small, method):
    pandas = pytest.importorskip("pandas")
    instance = np.random.default_rng(0).random((5, 2))
    for values in (instance, instance.tolist(), pandas.DataFrame(instance, columns=["x", "y"])):
        with pytest.raises(InputError, match=r"pairs of inputs .* got an instance without an ans"):
            getattr(small(), method)(values)
    with pytest.raises(InputError, match=r"example 0: expected a pair of .*, got ndarray"):
        getattr(small(), method)([instance])
