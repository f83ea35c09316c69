import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.types import Example

pytest.importorskip("pyvrp")


def test_few_iterations_give_routes_that_fit():
    """The search begins with overloaded routes; its penalties must outweigh the distances."""
    task = tasks.get("cvrp")
    inputs = task.sample(np.random.default_rng(0), 20, 21)
    answers = labellers.get("pyvrp")(inputs, iterations=20)
    costs = [task.costs(Example(x), [a])[0] for x, a in zip(inputs, answers, strict=True)]
    assert np.isfinite(costs).all()


@pytest.mark.parametrize("points", ["uniform", "mixed"])
def test_a_search_for_prizes_finds_nearly_the_best_tours(points):
    task = tasks.get("orienteering", points=points)
    for n in (1, 2, 3, 8, 12):
        inputs = task.sample(np.random.default_rng(n), 20, n)
        prizes = {
            name: -np.array(
                [task.costs(Example(x), [a])[0] for x, a in zip(inputs, rows, strict=True)]
            )
            for name in ("best-tour", "pyvrp-prizes")
            for rows in [labellers.label(task, inputs, name)]
        }
        assert (prizes["pyvrp-prizes"] <= prizes["best-tour"] + 1e-9).all()
        assert prizes["pyvrp-prizes"].mean() >= 0.99 * prizes["best-tour"].mean()


@pytest.mark.parametrize("unit", [1.0, 0.1, 1e-3, 1e-7, 1e-200])
def test_routes_do_not_depend_on_the_unit_of_demands(unit):
    position, demand = [[0, 0], [1, 0], [1, 1], [0, 1]], np.array([0, 1, 1, 1]) * unit
    inputs = tasks.get("cvrp").problem.pack(
        position=[position], demand=[demand], capacity=[3 * unit], rounded=[0]
    )
    (answer,) = labellers.get("pyvrp")(inputs)
    assert sorted(answer.tolist()) == [1, 2, 3]
