"""What rules make of the rest of a problem, against the same rules in plain loops."""

import math
from itertools import pairwise

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.types import Example


def begun(task, inputs, rng, choices):
    """Return the state after random choices, and these choices."""
    state, answer = task.problem.start(inputs[None]), []
    for _ in range(choices):
        answer.append(int(rng.choice(np.flatnonzero(task.problem.allowed(state)[0]))))
        state = task.problem.step(state, np.array(answer[-1:]))
    return state, answer


def jobs_by_most_work(jobs, answer):
    """Extend an answer by the rule: of the operations that can start first, the most work left."""
    answer, done = list(answer), [0] * len(jobs)
    job_free, machine_free = [0.0] * len(jobs), {}
    for step in range(sum(map(len, jobs))):
        if step < len(answer):
            job = answer[step]
        else:
            left = [j for j in range(len(jobs)) if done[j] < len(jobs[j])]
            start = {j: max(job_free[j], machine_free.get(jobs[j][done[j]][0], 0)) for j in left}
            job = min(left, key=lambda j: (start[j], -sum(d for _, d in jobs[j][done[j] :])))
            answer.append(job)
        machine, duration = jobs[job][done[job]]
        end = max(job_free[job], machine_free.get(machine, 0)) + duration
        job_free[job] = machine_free[machine] = end
        done[job] += 1
    return answer


@pytest.mark.parametrize("choices", [0, 5, 17])
def test_makespans_are_those_of_the_answers_by_the_rule(choices):
    task = tasks.get("job-shop", machines=5)
    rng = np.random.default_rng(choices)
    (inputs,) = task.sample(rng, 1, 6)
    jobs = task.problem.to_fields(inputs)["jobs"]
    jobs[2] = jobs[2][:3]
    inputs = task.problem.from_fields({"jobs": jobs}, "here")
    state, answer = begun(task, inputs, rng, choices)
    found = task.problem.makespans_by_rule(state)[0]
    allowed = task.problem.allowed(state)[0]
    assert np.isinf(found[~allowed]).all() and allowed.any()
    for job in np.flatnonzero(allowed):
        completed = np.array(jobs_by_most_work(jobs, [*answer, int(job)]))
        assert found[job] == task.costs(Example(inputs), [completed])[0]


def places_by_prize(points, prize, limit, rounded, answer):
    """Extend a tour by the rule: the largest prize by distance that leaves a way back.

    The way back may visit other places: if distances are rounded, it may then be shorter.
    """

    def dist(a, b):
        length = math.dist(points[a], points[b])
        return math.floor(length + 0.5) if rounded else length

    def ways_back(places):
        back = {j: dist(j, 0) for j in places}
        for _ in places if rounded else ():
            back = {j: min(back[j], *(dist(j, k) + back[k] for k in places)) for j in places}
        return back

    tour = [0, *answer]
    left = limit - sum(dist(a, b) for a, b in pairwise(tour))
    while True:
        near = [j for j in range(len(points)) if j not in tour]
        back = ways_back(near)
        near = [j for j in near if dist(tour[-1], j) + back[j] <= left]
        if not near:
            return tour[1:]
        place = max(near, key=lambda j: prize[j] / (dist(tour[-1], j) + 1e-9))
        left -= dist(tour[-1], place)
        tour.append(place)


@pytest.mark.parametrize(("rounded", "scale"), [(0, 1), (1, 10), (1, 2), (1, 1)])
@pytest.mark.parametrize("choices", [0, 2])
def test_prizes_are_those_of_the_tours_by_the_rule(choices, rounded, scale):
    task = tasks.get("orienteering")
    rng = np.random.default_rng(choices)
    (inputs,) = task.sample(rng, 1, 15)
    if rounded:
        inputs = inputs * [scale, scale, 1, scale, 1] + [0, 0, 0, 0, 1]
    state, answer = begun(task, inputs, rng, choices)
    found = task.problem.prizes_by_rule(state)[0]
    allowed = task.problem.allowed(state)[0]
    assert not found[~allowed].any() and allowed.sum() > 2
    for place in np.flatnonzero(allowed):
        tour = places_by_prize(
            inputs[:, :2].tolist(), inputs[:, 2], inputs[0, 3], rounded, [*answer, int(place)]
        )
        gained = inputs[tour, 2].sum() - inputs[answer, 2].sum()
        assert found[place] == pytest.approx(gained, rel=1e-12)
