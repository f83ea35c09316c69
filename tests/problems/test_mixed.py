"""Random instances of many kinds (`points` mixed), to train models for people's files."""

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.errors import InputError

LABELLERS = {"cvrp": "pyvrp-quick", "knapsack": "dynamic-programming", "orienteering": "best-tour"}


@pytest.mark.parametrize("name", LABELLERS)
def test_labels_of_mixed_instances_are_answers(name):
    if name == "cvrp":
        pytest.importorskip("pyvrp")
    task, rng = tasks.get(name, points="mixed"), np.random.default_rng(1)
    for n in (2, 3, 9, 12):
        for _ in range(5):
            inputs = task.sample(rng, 4, n)
            assert [task.instance_error(x) for x in inputs] == [None] * 4
            answers = task.canonicalize(inputs, labellers.label(task, inputs, LABELLERS[name]))
            assert task.problem.answer_errors(inputs, answers) == [None] * 4
            assert all(len(answer) for answer in answers)


def test_mixed_capacities_and_limits_vary():
    rng = np.random.default_rng(2)
    for name, shared in (("cvrp", "capacity"), ("knapsack", "capacity"), ("orienteering", "limit")):
        task = tasks.get(name, points="mixed")
        assert len(np.unique(task.problem.unpack(task.sample(rng, 50, 21))[shared])) > 10
        task = tasks.get(name)
        assert len(np.unique(task.problem.unpack(task.sample(rng, 50, 21))[shared])) == 1


def test_shops_of_a_range_of_machines_have_one_number_in_a_batch():
    task, rng = tasks.get("job-shop", machines="2,4-5"), np.random.default_rng(3)
    counts = [
        {len(job) for x in task.sample(rng, 3, 4) for job in task.problem.to_fields(x)["jobs"]}
        for _ in range(30)
    ]
    assert all(len(count) == 1 for count in counts)
    assert set.union(*counts) == {2, 4, 5}
    with pytest.raises(InputError, match="machines: expected at most 20, got 5-21"):
        tasks.get("job-shop", machines="5-21")
    with pytest.raises(InputError, match="points: problem job-shop has no such setting"):
        tasks.get("job-shop", points="mixed")
