"""Schedules of tabu search, against all schedules, published optima and simple bounds."""

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.labellers import tabu_search
from ptrnet.types import Example

TASK = tasks.get("job-shop")
# The instances ft06 of Fisher and Thompson (1963) and la01 of Lawrence (1984), and their optima.
FT06 = """
2 1  0 3  1 6  3 7  5 3  4 6
1 8  2 5  4 10 5 10 0 10 3 4
2 5  3 4  5 8  0 9  1 1  4 7
1 5  0 5  2 5  3 3  4 8  5 9
2 9  1 3  4 5  5 4  0 3  3 1
1 3  3 3  5 9  0 10 4 4  2 1
"""
LA01 = """
1 21 0 53 4 95 3 55 2 34
0 21 3 52 4 16 2 26 1 71
3 39 4 98 1 42 2 31 0 12
1 77 0 55 4 79 2 66 3 77
0 83 3 34 2 64 1 19 4 37
1 54 2 43 4 79 0 92 3 62
3 69 4 77 1 87 2 87 0 93
2 38 0 60 1 41 3 24 4 83
3 17 1 49 4 25 0 44 2 98
4 77 3 79 2 43 1 75 0 96
"""


def from_text(text):
    rows = [
        np.array(line.split(), int).reshape(-1, 2).tolist() for line in text.split("\n") if line
    ]
    return TASK.problem.from_fields({"jobs": rows}, "here")


def makespan(inputs, answer):
    assert TASK.problem.answer_errors(inputs, [answer]) == [None]
    return TASK.costs(Example(inputs), [answer])[0]


@pytest.mark.parametrize(("text", "optimum"), [(FT06, 55), (LA01, 666)])
def test_published_optima_are_found(text, optimum):
    inputs = from_text(text)
    assert makespan(inputs, tabu_search.schedule(inputs, 5000)) == optimum


def orders(counts):
    """Return every order of jobs in which job j comes `counts[j]` times."""
    if not any(counts):
        return [[]]
    return [
        [j, *rest]
        for j, count in enumerate(counts)
        if count
        for rest in orders([*counts[:j], count - 1, *counts[j + 1 :]])
    ]


def drawn_jobs(seed):
    """Jobs have different numbers of operations, some visit a machine twice, some take no time."""
    rng = np.random.default_rng(seed)
    return [
        [[int(rng.integers(3)), int(rng.integers(5))] for _ in range(rng.integers(1, 5))]
        for _ in range(3)
    ]


# In these shops, no operation of a critical path can move to an end of its block: jobs visit a
# machine twice, or operations take no time.
WITHOUT_MOVES = [
    [[[0, 2]], [[2, 2], [2, 1], [0, 2]], [[1, 2], [2, 3], [0, 2], [0, 2]]],
    [[[2, 2], [0, 2]], [[2, 4], [2, 1], [0, 1], [0, 4]], [[2, 1], [2, 1], [0, 3]]],
    [[[0, 3], [2, 0], [2, 2]], [[2, 1], [0, 1], [2, 3]], [[2, 1]]],
    [[[0, 3], [0, 1], [2, 2]], [[2, 2], [0, 0], [2, 1]], [[2, 0], [0, 2]]],
    [[[1, 1], [1, 2], [2, 0], [2, 2]], [[1, 0]], [[1, 0], [0, 0], [2, 1]]],
]


@pytest.mark.parametrize("jobs", [*map(drawn_jobs, range(20)), *WITHOUT_MOVES])
def test_no_schedule_of_three_jobs_is_shorter(jobs):
    inputs = TASK.problem.from_fields({"jobs": jobs}, "here")
    answers = np.array(orders([*map(len, jobs)]))
    best = TASK.problem.cost(np.broadcast_to(inputs, (len(answers), *inputs.shape)), answers)
    assert makespan(inputs, tabu_search.schedule(inputs, 2000)) == best.min()


def test_many_jobs_on_few_machines_take_as_long_as_the_busiest_machine():
    """Taillard's shops of 50 jobs on 15 machines all have schedules as short as this bound."""
    task = tasks.get("job-shop", machines=15)
    (inputs,) = task.sample(np.random.default_rng(1), 1, 50)
    machine, duration = inputs[:, :15], inputs[:, 20:35]
    busiest = max(duration[machine == m].sum() for m in range(15))
    found = makespan(inputs, tabu_search.schedule(inputs, 20_000))
    assert busiest <= found <= 1.02 * busiest


def test_an_operation_of_no_length_and_a_single_job():
    inputs = TASK.problem.from_fields({"jobs": [[[0, 0], [1, 2.5], [0, 0]]]}, "here")
    np.testing.assert_array_equal(tabu_search.schedule(inputs, 100), [0, 0, 0])
