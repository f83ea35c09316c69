"""Pictures of problems' answers: routes, schedules and knapsacks."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from ptrnet import tasks
from ptrnet.errors import InputError
from ptrnet.plots.answer import ANSWER_COLOR, check_plot, draw_answered, picture_size
from ptrnet.problems import Problem
from ptrnet.problems.base import ProblemTask
from ptrnet.problems.knapsack import Knapsack
from ptrnet.types import Example


def drawn(name, fields, outputs, known=None):
    task, ax = tasks.get(name), Figure().add_subplot()
    example = Example(task.problem.from_fields(fields, "here"), np.array(outputs))
    draw_answered(ax, task, example, None if known is None else np.array(known))
    assert np.isfinite(picture_size(task, example)).all()
    return ax


def test_each_route_has_a_color_and_leads_from_the_depot_and_back():
    position = [[0, 0], [0, 3], [4, 3], [4, 0]]
    fields = {"position": position, "demand": [0, 1, 1, 2], "capacity": 2}
    ax = drawn("cvrp", fields, [1, 2, 0, 3])
    routes = [line for line in ax.lines if len(line.get_xydata()) > 1]
    assert [line.get_xydata().tolist() for line in routes] == [
        [[0, 0], [0, 3], [4, 3], [0, 0]],
        [[0, 0], [4, 0], [0, 0]],
    ]
    assert routes[0].get_color() != routes[1].get_color()
    (depot,) = [line for line in ax.lines if line.get_marker() == "s"]
    assert depot.get_xydata().tolist() == [[0, 0]]
    assert ax.get_title(loc="left").endswith("cost 20")  # 3 + 4 + 5, and 4 + 4


def test_the_gap_to_a_known_answer_is_in_the_title():
    position = [[0, 0], [0, 3], [4, 3], [4, 0]]
    fields = {"position": position, "prize": [0, 1, 2, 2], "limit": 12}
    ax = drawn("orienteering", fields, [1, 2], known=[2, 3])
    first, second = ax.get_title(loc="left").splitlines()
    assert first.endswith("cost -3, length 12")
    assert second == "known answer -4, gap 25.00%"
    dashed, tour = [line.get_xydata().tolist() for line in ax.lines if len(line.get_xydata()) > 3]
    assert dashed == [[0, 0], [4, 3], [4, 0], [0, 0]]
    assert tour == [[0, 0], [0, 3], [4, 3], [0, 0]]


def test_chosen_items_have_the_color_of_the_answer():
    ax = drawn("knapsack", {"weight": [3, 4, 2], "value": [5, 6, 3], "capacity": 6}, [1, 2])
    points = {line.get_color(): line.get_xydata().tolist() for line in ax.lines}
    assert points.pop(ANSWER_COLOR) == [[4, 6], [2, 3]]
    assert list(points.values()) == [[[3, 5]]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("weight", "value")
    assert ax.get_title(loc="left").endswith("cost -9, weight 6")


def schedule(jobs, order):
    """Return machine, start, end and job of each operation, by plain loops."""
    done, job_free, machine_free, operations = [0] * len(jobs), [0] * len(jobs), {}, []
    for job in order:
        machine, duration = jobs[job][done[job]]
        start = max(job_free[job], machine_free.get(machine, 0))
        done[job] += 1
        job_free[job] = machine_free[machine] = start + duration
        operations.append((machine, start, start + duration, job))
    return operations


@pytest.mark.parametrize("seed", range(3))
def test_bars_are_the_schedule(seed):
    rng = np.random.default_rng(seed)
    task = tasks.get("job-shop", machines=5)
    (inputs,) = task.sample(rng, 1, 4)
    jobs = task.problem.to_fields(inputs)["jobs"]
    order = rng.permutation(np.repeat(np.arange(4), 5))
    ax = drawn("job-shop", {"jobs": jobs}, order)
    colors = [to_rgba(f"C{job}") for job in range(4)]
    bars = [
        (
            round(bar.get_y() + bar.get_height() / 2),
            bar.get_x(),
            bar.get_x() + bar.get_width(),
            colors.index(bar.get_facecolor()),
        )
        for bar in ax.patches
    ]
    expected = schedule(jobs, order.tolist())
    assert sorted(bars) == sorted(expected)
    for machine in range(5):
        on_machine = sorted(bar[1:3] for bar in bars if bar[0] == machine)
        assert all(a[1] <= b[0] for a, b in pairwise(on_machine))
    makespan = max(end for _, _, end, _ in expected)
    assert ax.lines[0].get_xdata()[0] == makespan
    assert ax.get_title(loc="left").endswith(f"cost {makespan}")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (numbers on bars: jobs)", "machine")


def test_a_schedule_without_durations_is_drawn():
    ax = drawn("job-shop", {"jobs": [[[0, 0]], [[2, 0]]]}, [0, 1])
    assert [bar.get_width() for bar in ax.patches] == [0, 0]


def test_a_problem_without_a_picture_is_refused_before_it_is_solved(tmp_path):
    class Plain(Knapsack):  # not registered, because later tests would see the name
        name, draw = "plain", Problem.draw

    with pytest.raises(InputError, match="problem plain has no picture"):
        check_plot(tmp_path / "a.png", ProblemTask(Plain()))
    check_plot(tmp_path / "a.png", tasks.get("job-shop"))
