"""What the network sees of a job shop, and job shops backwards."""

import numpy as np
import pytest

import ptrnet
from ptrnet import Solver, labellers, tasks
from ptrnet.data.batches import augment
from ptrnet.errors import InputError
from ptrnet.models.settings import LayerSettings
from ptrnet.models.state_ptr_net import StatePtrNet
from ptrnet.types import Dataset, Example


@pytest.mark.parametrize(
    ("jobs", "complaint"),
    [
        ([[[0, 1], [20, 1]]], "expected machines 0 to 19, got 20"),
        ([[[0, 1], [0.5, 1]]], "expected machines 0 to 19, got 0.5"),
        ([[[0, 1]], [[0, -2]]], "expected durations of 0 or more, got -2"),
        ([[[0, 1]], [[0, 1]] * 21], '"jobs": job 1: expected 1 to 20 pairs'),
        ([[[0, 1], [1]]], '"jobs": job 0: expected 1 to 20 pairs'),
        ([[]], '"jobs": job 0: expected 1 to 20 pairs'),
        ([[["0", "1"]]], '"jobs": job 0: expected 1 to 20 pairs'),
        ([[[0, None]]], '"jobs": job 0: expected 1 to 20 pairs'),
        ({"a": 1}, '"jobs": expected a list of jobs'),
    ],
)
def test_jobs_that_are_not_a_shop_are_refused_in_one_line(jobs, complaint):
    with pytest.raises(InputError, match=complaint):
        ptrnet.label("job-shop", {"jobs": jobs})


def test_features_do_not_grow_with_the_number_of_jobs():
    """Else a network that learned from few jobs fails for many."""
    task = tasks.get("job-shop", machines=10)
    largest = {}
    for jobs in (10, 100):
        state = task.problem.start(task.sample(np.random.default_rng(0), 2, jobs))
        seen = []
        for step in range(jobs * 9):  # until a tenth of the operations is left
            if step % 10 == 0:
                parts = task.problem.features(state)
                seen.append([np.abs(part).reshape(-1, part.shape[-1]).max(0) for part in parts])
            state = task.problem.step(state, task.problem.allowed(state).argmax(1))
        largest[jobs] = [np.max(part, axis=0) for part in zip(*seen, strict=True)]
    for few, many in zip(largest[10], largest[100], strict=True):
        assert (many < np.maximum(2 * few, 2.5)).all()


def drawn_jobs(rng):
    """Jobs with different numbers of operations. Some take no time."""
    return [
        [[int(m), int(rng.integers(4))] for m in rng.permutation(4)[: rng.integers(1, 5)]]
        for _ in range(6)
    ]


def test_backwards_schedules_take_no_longer():
    task = tasks.get("job-shop")
    rng = np.random.default_rng(1)
    jobs = [drawn_jobs(rng) for _ in range(50)]
    inputs = np.stack([task.problem.from_fields({"jobs": j}, "here") for j in jobs])
    backwards = task.problem.backwards(inputs)
    assert [task.problem.to_fields(i)["jobs"] for i in backwards] == [
        [j[::-1] for j in js] for js in jobs
    ]
    np.testing.assert_array_equal(task.problem.backwards(backwards), inputs)
    answers = [rng.permutation([k for k, j in enumerate(js) for _ in j]) for js in jobs]
    turned = task.problem.answers_backwards(inputs, answers)
    for before, after, answer, turned_answer in zip(
        inputs, backwards, answers, turned, strict=True
    ):
        assert task.problem.answer_errors(after, [turned_answer]) == [None]
        makespan = task.problem.cost(before[None], answer[None])
        assert task.problem.cost(after[None], turned_answer[None]) <= makespan


def test_best_schedules_are_as_short_backwards():
    """Augmentation turns about half of the shops. A best schedule of one is one of the other."""
    task = tasks.get("job-shop", machines=4)
    inputs = task.sample(np.random.default_rng(1), 10, 5)
    answers = labellers.label(task, inputs, "tabu-search")
    shops, schedules = augment(np.random.default_rng(1), task, inputs, answers)
    best, turned = (
        [task.problem.cost(i[None], a[None])[0] for i, a in zip(shop, answer, strict=True)]
        for shop, answer in ((inputs, answers), (shops, schedules))
    )
    assert best == turned


def test_views_that_are_backwards_give_answers_to_the_instance():
    """A network without training must not need them to be valid by chance."""
    task = tasks.get("job-shop", machines=4)
    network = StatePtrNet.for_task(task, LayerSettings(hidden_size=8, heads=2, encoder_layers=1))
    solver = Solver(network, task)
    data = Dataset.of([Example(inputs) for inputs in task.sample(np.random.default_rng(1), 20, 6)])
    costs = {
        views: np.array(
            [task.costs(e, [e.outputs])[0] for e in solver.predict(data, augment=views)]
        )
        for views in (1, 2)
    }
    assert np.isfinite(costs[2]).all() and (costs[2] <= costs[1]).all()
    assert (costs[2] < costs[1]).any()
