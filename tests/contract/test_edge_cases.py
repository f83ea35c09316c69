"""Instances of problems with zeros, equal numbers and ties, of which all or nothing fits."""

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.data import checks, formats
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.labels import label_dataset
from ptrnet.problems.check import all_answers
from ptrnet.types import Example

NAMES = [*tasks.names(), *tasks.problem_names()]
LABELLERS = [
    (name, labeller) for name in NAMES for labeller in labellers.names_for(tasks.get(name))
]


def knapsacks(rng, n):
    weight, value = rng.integers(0, 4, n), rng.integers(0, 3, n)
    capacity = rng.choice([0, 1, 3, weight.sum(), 1e6])
    return {"weight": weight, "value": value * rng.integers(0, 2), "capacity": capacity}


def routes(rng, n):
    """Places on a small grid, so that several are equal. A vehicle may have no place to spare."""
    demand = rng.integers(0, 4, n) * rng.integers(0, 2)
    demand[0] = 0
    capacity = rng.choice([demand.max(), demand.max() + 1, demand.sum(), 1e6])
    position = rng.integers(0, 3, (n, 2)) * 0.4
    return {"position": position, "demand": demand, "capacity": capacity, "rounded": n % 2}


def tours(rng, n):
    prize = rng.integers(0, 3, n) * rng.integers(0, 2)
    limit = rng.choice([0, 0.8, 1.2, 3, 1e6])
    position = rng.integers(0, 3, (n, 2)) * rng.choice([0.4, 1])
    return {"position": position, "prize": prize, "limit": limit, "rounded": n % 2}


def shops(rng, n):
    """Up to three operations of each job on three machines. A third of them take no time."""
    return {"jobs": [rng.integers(0, 3, (1 + k % 3, 2)).tolist() for k in range(2, 2 + min(n, 4))]}


DRAW = {"knapsack": knapsacks, "cvrp": routes, "orienteering": tours, "job-shop": shops}


def drawn(task, count):
    """Return instances of a problem, or points on a grid, many of which are equal."""
    rng, instances = np.random.default_rng(3), []
    while len(instances) < count:
        n = int(rng.integers(max(task.facts.min_elements, task.facts.fixed + 1), 6))
        if task.name in DRAW:
            instances.append(task.problem.from_fields(DRAW[task.name](rng, n), "here"))
        else:
            instances.append(rng.integers(0, 3, (n, task.facts.num_features)) * 0.1)
        if task.instance_error(instances[-1]):  # such as points on a line
            instances.pop()
    return instances


def random_answers(task, inputs, rng, count):
    """Return valid answers that no rule chose."""
    if task.name == "job-shop":  # not only active schedules
        jobs = np.repeat(np.arange(len(inputs)), (inputs[:, :20] >= 0).sum(1))
        return [rng.permutation(jobs) for _ in range(count)]
    if task.name in DRAW:
        found = list(all_answers(task.problem, inputs).values())
        return [found[k] for k in rng.permutation(len(found))[:count]]
    return [rng.permutation(len(inputs)) for _ in range(count)]


def test_every_problem_has_edge_cases():
    assert set(DRAW) == set(tasks.problem_names())


@pytest.mark.parametrize("name", [name for name in NAMES if tasks.get(name).facts.has_costs])
def test_a_canonical_answer_costs_no_more_than_the_answer_it_was_made_from(name):
    task, rng = tasks.get(name), np.random.default_rng(4)
    for inputs in drawn(task, 80):
        answers = random_answers(task, inputs, rng, 25)
        stacked = np.broadcast_to(inputs, (len(answers), *inputs.shape))
        canonical = task.canonicalize(stacked, answers)
        before, after = (task.costs(Example(inputs), list(a)) for a in (answers, canonical))
        assert np.isfinite(after).all()
        assert (after <= before + 1e-12 * np.abs(before)).all()


@pytest.mark.parametrize(("name", "labeller"), LABELLERS)
@pytest.mark.filterwarnings(
    "ignore:.*answers only have the first of equal elements", "ignore:.*EUC_2D rounds distances"
)
def test_every_command_reads_what_a_labeller_writes(tmp_path, name, labeller):
    """A label that is no heuristic's is also the best of all answers."""
    try:
        labellers.check_labeller(tasks.get(name), labeller)
    except MissingExtraError as error:
        pytest.skip(str(error))
    task, path = tasks.get(name), str(tmp_path / "a.jsonl")
    for inputs in drawn(task, 30):
        every = list(all_answers(task.problem, inputs).values()) if name in DRAW else [np.zeros(1)]
        try:
            labelled = label_dataset(task, labeller, [Example(inputs, source="here")])
        except InputError:
            assert max(map(len, every)) == 0  # nothing can be chosen
            continue
        formats.write(path, labelled, task)
        (example,) = formats.read(path, task)
        assert example.outputs.tolist() == labelled[0].outputs.tolist()
        checks.check_feasible([example], task)
        if name in DRAW and not labellers.is_heuristic(labeller):
            cost = task.costs(example, [example.outputs])[0]
            assert cost == pytest.approx(task.costs(example, every).min(), rel=1e-9)
