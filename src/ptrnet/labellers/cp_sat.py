"""Job shops by OR-Tools' solver CP-SAT, with a proof if time permits.

The solver has one worker and a limit in deterministic time, so that the same instances get the same
answers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError
from ptrnet.types import Floats, Indices

NEEDS = "ortools"
UNPROVED = "no proof was found within the time limit"
MOST = 1e15  # float64 adds whole numbers exactly only up to 9e15
LIMIT = 10.0  # units of CP-SAT's deterministic time; a unit is about a second


def label(inputs: Floats) -> list[Indices]:
    """Return the best schedules that were found; see `label_with_proof`."""
    return label_with_proof(inputs)[0]


def label_with_proof(inputs: Floats) -> tuple[list[Indices], NDArray[np.bool_]]:
    """Return the jobs of all operations by start time, and whether each schedule is proved best.

    Args:
        inputs: `(B, n, 2 m)`: for each job, the machines of its operations, -1 for no operation,
            and then the durations of its operations. Durations are whole numbers.
    """
    schedules = [_schedule(instance) for instance in inputs]
    answers = [np.array(answer, np.int64) for answer, _ in schedules]
    return answers, np.array([proved for _, proved in schedules], bool)


def _schedule(instance: Floats) -> tuple[list[int], bool]:
    from ortools.sat.python import cp_model

    if (instance != np.round(instance)).any():
        raise InputError("labeller cp-sat: expected durations that are whole numbers")
    total = instance[:, instance.shape[1] // 2 :].sum()
    if total > MOST:
        raise InputError(
            f"labeller cp-sat: expected durations with a sum of at most {MOST:g}, got {total:g}"
        )
    machines, durations = np.split(instance.astype(int), 2, axis=1)
    horizon = int(total)
    model = cp_model.CpModel()
    makespan = model.new_int_var(0, horizon, "makespan")
    on_machine: dict[int, list[cp_model.IntervalVar]] = {}
    operations = []
    for job, row in enumerate(machines):
        earliest: Any = 0
        for k in np.flatnonzero(row >= 0):
            start = model.new_int_var(0, horizon, f"start {job} {k}")
            length = int(durations[job, k])
            on_machine.setdefault(int(row[k]), []).append(
                model.new_fixed_size_interval_var(start, length, f"operation {job} {k}")
            )
            model.add(start >= earliest)
            model.add(makespan >= start + length)
            earliest = start + length
            operations.append((start, length, int(k), job))
    for intervals in on_machine.values():
        model.add_no_overlap(intervals)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    # With its own handler, Ctrl-C would end the search, and later ones this process at once.
    solver.parameters.catch_sigint_signal = False
    solver.parameters.max_deterministic_time = LIMIT
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return [], False
    order = sorted((solver.value(start), length, k, job) for start, length, k, job in operations)
    return [job for *_, job in order], status == cp_model.OPTIMAL
