import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.types import Example

pytest.importorskip("pyvrp")


def test_few_iterations_give_routes_that_fit():
    """The search begins with overloaded routes; its penalties must outweigh the distances."""
    task = tasks.get("cvrp")
    inputs = task.sample(np.random.default_rng(0), 20, 21)
    answers = labellers.get("pyvrp")(inputs, iterations=20).rows()
    costs = [task.costs(Example(x), [a])[0] for x, a in zip(inputs, answers, strict=True)]
    assert np.isfinite(costs).all()
