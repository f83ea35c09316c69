"""Routes in canonical form: the same routes, in an order that is easy to learn."""

import numpy as np
import pytest

from ptrnet import InputError, tasks

TASK = tasks.get("cvrp")


def routes_of(answer):
    return [route[route > 0] for route in np.split(answer, np.flatnonzero(answer == 0))]


def random_answer(rng, inputs):
    """Customers in random order; the vehicle returns when the next one does not fit."""
    demand, (capacity, *_) = inputs[:, 2], inputs[:, 3]
    answer, left = [], capacity
    for customer in rng.permutation(np.arange(1, len(inputs))):
        if demand[customer] > left:
            answer.append(0)
            left = capacity
        left -= demand[customer]
        answer.append(customer)
    return np.array(answer)


@pytest.mark.parametrize("seed", range(5))
def test_the_most_distant_customer_is_in_the_first_route_and_routes_begin_far_away(seed):
    rng = np.random.default_rng(seed)
    inputs = TASK.sample(rng, 1, 15)
    answer = random_answer(rng, inputs[0])
    (canonical,) = TASK.canonicalize(inputs, [answer])
    before, after = routes_of(answer), routes_of(canonical)
    assert {frozenset(route) for route in after} == {frozenset(route) for route in before}
    costs = [TASK.problem.cost(inputs, tour[None])[0] for tour in (answer, canonical)]
    assert costs[0] == pytest.approx(costs[1])
    to_depot = np.linalg.norm(inputs[0, :, :2] - inputs[0, 0, :2], axis=1)
    assert all(to_depot[route[0]] >= to_depot[route[-1]] for route in after)
    farthest = [to_depot[route].max() for route in after]
    assert farthest == sorted(farthest, reverse=True)


def test_a_capacity_below_the_largest_demand_is_refused():
    """Random demands are up to 9, so a smaller capacity could not be kept."""
    with pytest.raises(InputError, match="at least the largest demand, 9, got 5"):
        tasks.get("cvrp", capacity=5.0)
    inputs = tasks.get("cvrp", capacity=9.0).sample(np.random.default_rng(1), 20, 15)
    assert (inputs[..., 3] == 9).all() and inputs[..., 2].max() == 9
