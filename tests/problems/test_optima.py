"""Compare the best answers that choices can reach with all answers, by plain loops."""

import math
from itertools import pairwise, permutations, product

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.errors import InputError
from ptrnet.labellers import circuit
from ptrnet.labels import label_dataset
from ptrnet.problems.check import all_answers
from ptrnet.types import Example

LABELLERS = pytest.mark.parametrize("labeller", ["best-tour", "circuit", "pyvrp-prizes"])
SEEDS = pytest.mark.parametrize("seed", range(4))


def skip_without_solver(labeller):
    packages = {"circuit": "ortools", "pyvrp-prizes": "pyvrp"}
    if labeller in packages:
        pytest.importorskip(packages[labeller])


def drawn(name, n, seed, **settings):
    task = tasks.get(name, **settings)
    (inputs,) = task.sample(np.random.default_rng(seed), 1, n)
    return task, inputs


def best_found(task, inputs):
    answers = list(all_answers(task.problem, inputs).values())
    return task.costs(Example(inputs), answers).min()


def length(points, path):
    return sum(math.dist(points[a], points[b]) for a, b in pairwise(path))


def rounded_length(points, path):
    return sum(math.floor(math.dist(points[a][:2], points[b][:2]) + 0.5) for a, b in pairwise(path))


@SEEDS
def test_best_routes(seed):
    task, inputs = drawn("cvrp", 6, seed, capacity=15)
    points, demand, capacity = inputs[:, :2].tolist(), inputs[:, 2], inputs[0, 3]
    best = math.inf
    for order in permutations(range(1, 6)):
        for cuts in product([False, True], repeat=4):
            path, load, fits = [0], 0.0, True
            for customer, is_cut in zip(order, (False, *cuts), strict=True):
                if is_cut:
                    path, load = [*path, 0], 0.0
                load += demand[customer]
                fits &= load <= capacity
                path.append(customer)
            if fits:
                best = min(best, length(points, [*path, 0]))
    assert best_found(task, inputs) == pytest.approx(best, rel=1e-12)


@SEEDS
def test_best_tour_within_a_length(seed):
    task, inputs = drawn("orienteering", 7, seed, limit=1.6)
    points, prize = inputs[:, :2].tolist(), inputs[:, 2]
    best = max(
        sum(prize[k] for k in tour)
        for m in range(7)
        for tour in permutations(range(1, 7), m)
        if length(points, [0, *tour, 0]) <= 1.6
    )
    assert best_found(task, inputs) == pytest.approx(-best, rel=1e-12)


@SEEDS
def test_every_tour_within_a_rounded_limit_is_an_answer_unless_it_can_go_on(seed):
    """Rounding violates the triangle inequality, so a direct way home is not always shortest."""
    task, rng = tasks.get("orienteering"), np.random.default_rng(seed)
    with_detour = 0
    for limit in (1, 1, 2, 2, 3, 4):
        fields = {"position": rng.random((6, 2)), "prize": [0, 1, 0, 2, 1, 1]}
        inputs = task.problem.from_fields({**fields, "limit": limit, "rounded": 1}, "here")
        tours = [tour for m in range(6) for tour in permutations(range(1, 6), m)]
        closed = {tour: rounded_length(inputs, [0, *tour, 0]) for tour in tours}
        short = [tour for tour in tours if closed[tour] <= limit]
        extended = {tour[:m] for tour in short for m in range(len(tour))}
        assert set(all_answers(task.problem, inputs)) == set(short) - extended
        with_detour += any(closed[tour] > limit for tour in extended)
    assert with_detour


@LABELLERS
def test_rounded_tours_of_labellers_are_answers_even_if_places_must_follow(labeller):
    skip_without_solver(labeller)
    task, rng = tasks.get("orienteering"), np.random.default_rng(0)
    for limit in (1, 1, 1, 1, 2, 2, 2, 2, 3, 4):
        fields = {"position": rng.random((6, 2)), "prize": [0, 1, 0, 2, 1, 1]}
        inputs = task.problem.from_fields({**fields, "limit": limit, "rounded": 1}, "here")
        (tour,) = labellers.label(task, inputs[None], labeller)
        assert -task.costs(Example(inputs), [tour])[0] == best_prize(inputs)


@LABELLERS
def test_a_place_can_be_in_reach_only_by_other_places(labeller):
    """The direct way to place 3 is rounded up to 1, and each leg by another place down to 0."""
    skip_without_solver(labeller)
    task = tasks.get("orienteering")
    position = [[0, 0], [0.3, 0], [0.3, 0.1], [0.6, 0]]
    fields = {"position": position, "prize": [0, 0, 0, 1], "limit": 0, "rounded": 1}
    inputs = task.problem.from_fields(fields, "here")
    (tour,) = labellers.label(task, inputs[None], labeller)
    assert tour.tolist() in ([1, 3, 2], [2, 3, 1])
    assert task.problem.answer_errors(inputs, [tour]) == [None]


@LABELLERS
def test_tours_go_on_to_places_without_a_prize(labeller):
    """An answer may end only if no other place can follow."""
    skip_without_solver(labeller)
    task, _ = drawn("orienteering", 7, 0)
    instances = task.sample(np.random.default_rng(0), 20, 8)
    instances[:, [3, 5], 2] = 0
    for inputs, answer in zip(instances, labellers.label(task, instances, labeller), strict=True):
        assert task.problem.answer_errors(inputs, [answer]) == [None]


def makespan(jobs, order):
    done, job_free, machine_free = [0] * len(jobs), [0] * len(jobs), [0] * 20
    for job in order:
        machine, duration = jobs[job][done[job]]
        done[job] += 1
        job_free[job] = machine_free[machine] = max(job_free[job], machine_free[machine]) + duration
    return max(job_free)


@SEEDS
def test_best_active_schedule_is_the_best_of_all(seed):
    task, inputs = drawn("job-shop", 3, seed, machines=3)
    jobs = task.problem.to_fields(inputs)["jobs"]
    best = min(makespan(jobs, order) for order in set(permutations([0, 1, 2] * 3)))
    assert best_found(task, inputs) == best


@pytest.mark.parametrize("seed", range(10))
def test_best_active_schedule_is_the_best_even_if_operations_take_no_time(seed):
    task, rng = tasks.get("job-shop"), np.random.default_rng(seed)
    jobs = [rng.integers(0, 3, (count, 2)).tolist() for count in (3, 2, 3)]
    orders = set(permutations([0, 0, 0, 1, 1, 2, 2, 2]))
    inputs = task.problem.from_fields({"jobs": jobs}, "here")
    assert best_found(task, inputs) == min(makespan(jobs, order) for order in orders)


@SEEDS
def test_costs_equal_those_of_plain_loops(seed):
    task, inputs = drawn("job-shop", 4, seed, machines=4)
    answers = list(all_answers(task.problem, inputs).values())[:50]
    expected = [makespan(task.problem.to_fields(inputs)["jobs"], answer) for answer in answers]
    np.testing.assert_array_equal(task.costs(Example(inputs), answers), expected)


def test_rounded_routes_cost_whole_numbers():
    task = tasks.get("cvrp")
    fields = {"position": [[0, 0], [3, 4.4], [6, 0]], "demand": [0, 1, 1], "capacity": 1}
    exact, rounded = (task.problem.from_fields({**fields, "rounded": r}, "here") for r in (0, 1))
    answer = np.array([1, 0, 2])
    assert task.costs(Example(exact), [answer])[0] == pytest.approx(2 * math.hypot(3, 4.4) + 12)
    assert task.costs(Example(rounded), [answer])[0] == 2 * 5 + 12


@pytest.mark.parametrize(
    "outputs", [[], [1], [1, 2, 3], [3, 0, 1, 2], [0, 3, 0, 0, 1, 2, 0], [2, 0, 1, 0, 3]]
)
def test_routes_are_unchanged_after_conversion_to_tokens(outputs):
    task = tasks.get("cvrp")
    answers = [np.array(outputs, np.int64)]
    (tokens,) = task.to_tokens(answers)
    back = task.from_tokens(tokens[:-1])
    routes = " ".join(map(str, outputs)).split("0")
    assert " ".join(map(str, back)) == "0".join(r for r in routes if r.strip()).strip()


@pytest.mark.parametrize("name", ["cvrp", "knapsack", "orienteering", "job-shop"])
def test_answers_to_many_instances_are_judged_as_each_alone(name):
    task, rng = tasks.get(name), np.random.default_rng(0)
    inputs = [task.sample(rng, 1, n)[0] for n in rng.integers(3, 7, 60)]
    outputs = []
    for x in inputs:
        if name == "job-shop":
            order = rng.permutation(np.arange(len(x)).repeat(task.problem.machines))
        else:
            order = rng.permutation(np.arange(task.facts.fixed, len(x)))
        outputs.append(order[: rng.integers(1, len(order), endpoint=True)])
    alone = [task.problem.answer_errors(x, [a])[0] for x, a in zip(inputs, outputs, strict=True)]
    assert task.infeasible(inputs, outputs) == alone
    assert 0 < alone.count(None) < len(alone)
    examples = [Example(x, a) for x, a in zip(inputs, outputs, strict=True)]
    scores = task.score(examples, outputs)
    assert scores["valid"].tolist() == [error is None for error in alone]
    costs = [task.costs(e, [e.outputs])[0] for e in examples]
    np.testing.assert_array_equal(scores["cost"], np.where(np.isinf(costs), np.nan, costs))


def test_infeasible_answers_cost_infinitely_much_and_say_why():
    task = tasks.get("cvrp")
    fields = {"position": [[0, 0], [1, 0], [2, 0]], "demand": [0, 3, 4], "capacity": 5}
    inputs = task.problem.from_fields(fields, "here")
    answers = [np.array(a) for a in ([1, 2], [1], [1, 0, 2], [1, 1])]
    np.testing.assert_array_equal(task.costs(Example(inputs), answers), [np.inf, np.inf, 6, np.inf])
    assert task.problem.answer_errors(inputs, answers) == [
        "after 1 choices: element 2 is not allowed then",
        "after 1 choices: ends too early",
        None,
        "each index at most once, got 1 twice",
    ]


@SEEDS
def test_active_schedules_end_no_later(seed):
    task = tasks.get("job-shop", machines=5)
    rng = np.random.default_rng(seed)
    inputs = task.sample(rng, 40, 6)
    orders = np.array([rng.permutation(np.repeat(np.arange(6), 5)) for _ in inputs])
    active = np.stack(task.canonicalize(inputs, list(orders)))
    assert (task.problem.cost(inputs, active) <= task.problem.cost(inputs, orders)).all()
    for instance, order in zip(inputs, active, strict=True):
        state = task.problem.start(instance[None])
        for job in order:
            assert task.problem.allowed(state)[0, job]
            state = task.problem.step(state, np.array([job]))


@pytest.mark.parametrize(
    ("name", "n", "package"), [("cvrp", 6, "pyvrp"), ("job-shop", 3, "ortools")]
)
def test_labels_are_the_best_of_all_answers(name, n, package):
    pytest.importorskip(package)
    task, inputs = drawn(name, n, 0, **({"machines": 3} if name == "job-shop" else {}))
    (label,) = labellers.label(task, inputs[None])
    assert task.costs(Example(inputs), [label])[0] == pytest.approx(best_found(task, inputs))


def best_prize(inputs):
    prize, limit, rounded = inputs[:, 2], inputs[0, 3], inputs[0, 4]
    best, length_of = 0.0, rounded_length if rounded else length
    for tour in (t for m in range(len(inputs)) for t in permutations(range(1, len(inputs)), m)):
        if length_of(inputs[:, :2], [0, *tour, 0]) <= limit:
            best = max(best, sum(prize[k] for k in tour))
    return best


@pytest.mark.parametrize("rounded", [False, True])
@SEEDS
def test_circuits_collect_the_most_prizes(seed, rounded):
    """Some places have no prize. A tour also visits those, if they fit at its end."""
    pytest.importorskip("ortools")
    task, inputs = drawn("orienteering", 7, seed, limit=1.6)
    inputs[3, 2] = 0
    if rounded:
        inputs = inputs * [10, 10, 1, 10, 1] + [0, 0, 0, 0, 1]
    answers, proved = labellers.label_with_proof(task, inputs[None], "circuit")
    (tour,) = answers
    assert proved.all()
    assert -task.costs(Example(inputs), [tour])[0] == pytest.approx(best_prize(inputs), rel=1e-12)
    distances = [math.dist(inputs[k, :2], inputs[0, :2]) for k in tour if inputs[k, 2] > 0]
    assert distances[0] <= distances[-1]


def test_without_time_a_circuit_is_extended_by_a_rule_and_is_not_proved(monkeypatch):
    pytest.importorskip("ortools")
    monkeypatch.setattr(circuit, "LIMIT", 0.0)
    task, inputs = drawn("orienteering", 30, 0)
    answers, proved = labellers.label_with_proof(task, inputs[None], "circuit")
    assert task.costs(Example(inputs), answers)[0] < 0
    assert not proved.any()


def test_a_depot_without_places_in_reach_has_no_tour():
    pytest.importorskip("ortools")
    task, inputs = drawn("orienteering", 4, 0, limit=1e-9)
    for labeller in task.facts.labellers:
        with pytest.raises(InputError, match=r"no place can be visited|no answer was"):
            label_dataset(task, labeller, [Example(inputs, source="here")])


@pytest.mark.parametrize("capacity", [9, 12, 15])
@SEEDS
def test_routes_of_few_customers_and_tight_capacities_are_the_best(seed, capacity):
    """If overload were cheaper than distance, PyVRP would overload vehicles and find no answer."""
    pytest.importorskip("pyvrp")
    task, inputs = drawn("cvrp", 5, seed, capacity=capacity)
    (label,) = labellers.label(task, inputs[None])
    assert task.costs(Example(inputs), [label])[0] == pytest.approx(best_found(task, inputs))


def test_cp_sat_refuses_durations_that_are_not_whole():
    pytest.importorskip("ortools")
    task = tasks.get("job-shop")
    inputs = task.problem.from_fields({"jobs": [[[0, 2.5]], [[0, 1]]]}, "here")
    with pytest.raises(InputError, match="durations that are whole numbers"):
        label_dataset(task, "cp-sat", [Example(inputs, source="here")])
