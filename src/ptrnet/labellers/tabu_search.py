"""Good schedules of job shops of any size, by tabu search.

The search walks from schedule to schedule. In each schedule it finds a critical path: operations
without a pause between them, from time 0 to the makespan. A block is a maximal run of operations of
this path on one machine. A schedule can only get shorter if an operation of a block moves to the
front or the end of its block (Brucker, Jurisch and Sievers 1994). The moves are a subset of the
moves of Balas and Vazacopoulos (1998). The search makes the move that promises the shortest
makespan, even if the schedule gets longer. For some time after a move, the search may not reverse
it, so that it does not walk in circles (Nowicki and Smutnicki 1996).

Random choices have a fixed seed, so a shop always gets the same schedule.
"""

from typing import NamedTuple

import numpy as np

from ptrnet.jit import assign, inlined, inner, jit
from ptrnet.types import Floats, Indices

HEURISTIC = True
MOVES = 20_000  # per shop
RETURN_AFTER = 3_000  # moves without a better schedule, after which we return to the best schedule
SHAKES = 10  # after each return to the best schedule, the search makes SHAKES + 1 random moves
NONE = -1  # no operation
INSTANT = 2.0**-20  # takes the place of a duration of 0, as a share of the shortest other duration


def label(inputs: Floats) -> list[Indices]:
    """Return the jobs of all operations, in the order of their starts.

    Args:
        inputs: `(B, n, 2 m)`: for each job, the machines of its operations, -1 for no operation,
            and then the durations of its operations.

    Examples:
        >>> from ptrnet import tasks
        >>> shops = tasks.get("job-shop").sample(np.random.default_rng(1), 2, 6)
        >>> [len(jobs) for jobs in label(shops)]
        [36, 36]
    """
    return [schedule(instance, MOVES) for instance in inputs]


def schedule(instance: Floats, moves: int) -> Indices:
    """Return the answer to one instance `(n, 2 m)`, after at most `moves` moves."""
    machines, durations = np.split(instance, 2, axis=1)
    exists = machines >= 0
    job = np.ascontiguousarray(np.nonzero(exists)[0])
    machine, duration = machines[exists].astype(np.int64), durations[exists]
    # The rules of the search assume that all durations are above 0. With a duration of 0, they
    # would exclude moves, and the search could end early.
    least = duration[duration > 0].min(initial=np.inf)
    duration = np.maximum(duration, least * INSTANT if least < np.inf else 1.0)
    order, start = search(machine, duration, job, moves)
    return job[order[np.argsort(start[order], kind="stable")]]


class Schedule(NamedTuple):
    """The operations of all jobs, job after job, and the order of operations on each machine."""

    machine: Indices
    duration: Floats
    job: Indices
    job_before: Indices  # the previous operation of the same job, or NONE
    job_after: Indices
    # What follows changes during the search.
    before: Indices  # the previous operation on the same machine, or NONE
    after: Indices
    start: Floats  # the earliest start of each operation
    tail: Floats  # the time that is needed after the end of each operation
    order: Indices  # all operations, each after the operations that it must wait for


@jit
def search(machine: Indices, duration: Floats, job: Indices, moves: int) -> tuple[Indices, Floats]:
    """Return the best schedule that was found: its `order` and `start` (see `Schedule`)."""
    np.random.seed(0)
    count = len(machine)
    now = first_schedule(machine, duration, job)
    shortest, found_at = np.inf, 0
    best_before, best_after = now.before.copy(), now.after.copy()
    path = np.empty(count, np.int64)
    # Entry (a, b) is the number of the first move that may again put operation a ahead of job b's
    # operation on the same machine. Earlier moves may not.
    forbidden_until = np.zeros((count, job[-1] + 1), np.int64)
    tenure = 10 + (job[-1] + 1) // (machine.max() + 1)
    for move in range(1, moves + 1):
        makespan = update_times(now)
        if makespan < shortest:
            shortest, found_at = makespan, move
            assign(best_before, now.before)
            assign(best_after, now.after)
        since_return = (move - found_at) % RETURN_AFTER
        is_shaken = move - found_at >= RETURN_AFTER and since_return <= SHAKES
        if is_shaken and since_return == 0:
            assign(now.before, best_before)
            assign(now.after, best_after)
            makespan = update_times(now)
            forbidden_until = np.zeros_like(forbidden_until)
        length = critical_path(now, makespan, path)
        source, target = choose_move(now, path[:length], forbidden_until, move, shortest, is_shaken)
        if source == target:  # no schedule is shorter
            break
        until = move + tenure + np.random.randint(0, tenure // 2)
        op, direction = path[source], 1 if target > source else -1
        for k in range(source + direction, target + direction, direction):
            if direction > 0:
                forbidden_until[op, job[path[k]]] = until
            else:
                forbidden_until[path[k], job[op]] = until
        link(now, now.before[op], now.after[op])
        if direction > 0:
            behind = now.after[path[target]]
            link(now, path[target], op)
            link(now, op, behind)
        else:
            ahead = now.before[path[target]]
            link(now, ahead, op)
            link(now, op, path[target])
    assign(now.before, best_before)
    assign(now.after, best_after)
    update_times(now)
    return now.order, now.start


@inner
def link(now: Schedule, first: int, second: int) -> None:
    """Let operation `second` follow `first` on their machine. Either operation may be NONE."""
    if first != NONE:
        now.after[first] = second
    if second != NONE:
        now.before[second] = first


@inner
def first_schedule(machine: Indices, duration: Floats, job: Indices) -> Schedule:
    """Build a schedule step by step. Each step starts the operation that can start earliest.

    If several operations can start equally early, choose the job with the most work remaining.
    """
    count, jobs = len(job), job[-1] + 1
    work, job_free, next_of = np.zeros(jobs), np.zeros(jobs), np.full(jobs, NONE)
    now = Schedule(
        machine,
        duration,
        job,
        np.full(count, NONE),
        np.full(count, NONE),
        np.full(count, NONE),
        np.full(count, NONE),
        np.zeros(count),
        np.zeros(count),
        np.zeros(count, np.int64),
    )
    for op in range(count - 1, -1, -1):
        work[job[op]] += duration[op]
        next_of[job[op]] = op
        if op and job[op] == job[op - 1]:
            now.job_before[op], now.job_after[op - 1] = op - 1, op
    machine_free = np.zeros(machine.max() + 1)
    last_on = np.full(len(machine_free), NONE)
    for _ in range(count):
        chosen, earliest = NONE, np.inf
        for j in range(jobs):
            op = next_of[j]
            if op == NONE:
                continue
            start = max(job_free[j], machine_free[now.machine[op]])
            if start < earliest or (start == earliest and work[j] > work[now.job[chosen]]):
                chosen, earliest = op, start
        j, m = now.job[chosen], now.machine[chosen]
        job_free[j] = machine_free[m] = earliest + now.duration[chosen]
        work[j] -= now.duration[chosen]
        next_of[j] = now.job_after[chosen]
        link(now, last_on[m], chosen)
        last_on[m] = chosen
    return now


@inlined
def ready(now: Schedule, op: int, by_job: bool) -> float:
    """Return the time at which the operation before `op` ends; 0 if `op` is the first.

    The two operations are of one job if `by_job`, else on one machine.
    """
    before = now.job_before[op] if by_job else now.before[op]
    return now.start[before] + now.duration[before] if before != NONE else 0.0


@inlined
def rest(now: Schedule, op: int, by_job: bool) -> float:
    """Return the duration plus the tail of the operation after `op`; 0 if `op` is the last.

    The two operations are of one job if `by_job`, else on one machine.
    """
    after = now.job_after[op] if by_job else now.after[op]
    return now.tail[after] + now.duration[after] if after != NONE else 0.0


@inner
def update_times(now: Schedule) -> float:
    """Compute starts, tails and an order of all operations; return the makespan."""
    count = len(now.job)
    waits_for = np.empty(count, np.int64)
    filled = 0
    for op in range(count):
        waits_for[op] = int(now.job_before[op] != NONE) + int(now.before[op] != NONE)
        if waits_for[op] == 0:
            now.order[filled] = op
            filled += 1
    makespan = 0.0
    for k in range(count):
        op = now.order[k]
        now.start[op] = max(ready(now, op, True), ready(now, op, False))
        makespan = max(makespan, now.start[op] + now.duration[op])
        for after in (now.job_after[op], now.after[op]):
            if after != NONE:
                waits_for[after] -= 1
                if waits_for[after] == 0:
                    now.order[filled] = after
                    filled += 1
    for op in now.order[::-1]:
        now.tail[op] = max(rest(now, op, True), rest(now, op, False))
    return makespan


@inner
def critical_path(now: Schedule, makespan: float, path: Indices) -> int:
    """Write the operations of a random critical path into `path`; return their number."""
    op, count = NONE, 0
    for k in range(len(path)):
        if now.start[k] + now.duration[k] == makespan:
            count += 1
            if np.random.random() * count < 1:
                op = k
    length = 0
    while op != NONE:
        path[length] = op
        length += 1
        by_job = now.job_before[op] != NONE and ready(now, op, True) == now.start[op]
        by_machine = now.before[op] != NONE and ready(now, op, False) == now.start[op]
        if by_job and by_machine:
            by_job = np.random.random() < 0.5
        op = now.job_before[op] if by_job else now.before[op] if by_machine else NONE
    for k in range(length // 2):  # reverse the path, which was written from its end
        path[k], path[length - 1 - k] = path[length - 1 - k], path[k]
    return length


@inner
def choose_move(
    now: Schedule,
    path: Indices,
    forbidden_until: Indices,
    move: int,
    shortest: float,
    at_random: bool,
) -> tuple[int, int]:
    """Choose an operation of the critical path, and a target: the front or the end of its block.

    Choose the move that promises the shortest makespan. If several moves promise it, choose one of
    them at random. A forbidden move may only be chosen if it promises less than `shortest`. If
    `at_random`, or if no move may be chosen, choose any possible move at random. If a job visits a
    machine twice, no move may be possible. Then choose two neighbours at random, to swap them.

    Return the positions of the operation and the target in `path`. Return (0, 0) if no schedule is
    shorter: all operations of the path are on one machine, or all are of one job.
    """
    chosen, least, ties = (0, 0), np.inf, 0
    random_one, count = (0, 0), 0
    first = 0
    for end in range(1, len(path) + 1):
        if end < len(path) and now.machine[path[end]] == now.machine[path[first]]:
            continue
        for k in range(first, end):
            for target in (first, end - 1):
                # Moves to the front of the first block, or the end of the last block, are useless.
                is_edge = target == 0 if target == first else target == len(path) - 1
                if k == target or is_edge or not is_possible(now, path, k, target):
                    continue
                count += 1
                if np.random.random() * count < 1:
                    random_one = (k, target)
                promise = promised(now, path, k, target)
                is_forbidden = False
                for other in range(k + 1, target + 1):
                    is_forbidden |= forbidden_until[path[other], now.job[path[k]]] > move
                for other in range(target, k):
                    is_forbidden |= forbidden_until[path[k], now.job[path[other]]] > move
                if promise > least or (is_forbidden and promise >= shortest):
                    continue
                ties = ties + 1 if promise == least else 1
                if np.random.random() * ties < 1:
                    chosen, least = (k, target), promise
        first = end
    if count == 0 and (now.machine[path] != now.machine[path[0]]).any():
        for k in range(len(path) - 1):
            if is_possible(now, path, k, k + 1):
                count += 1
                if np.random.random() * count < 1:
                    random_one = (k, k + 1)
    return random_one if at_random or ties == 0 else chosen


@inlined
def is_possible(now: Schedule, path: Indices, source: int, target: int) -> bool:
    """Whether an operation can move behind or ahead of another operation of its block.

    `source` and `target` are the positions of the two operations in `path`.

    Operation a cannot move behind b if b must wait for the operation that follows a in a's job. The
    tail of this follower is then at least as long as b's duration plus b's tail. So we compare
    these two times, which also excludes some possible moves. For a move ahead of b, we compare the
    end of b with the start of a's predecessor: the operation before a in a's job.
    """
    op, other = path[source], path[target]
    if target > source:
        after = now.job_after[op]
        return after == NONE or (
            after != other and now.tail[after] < now.tail[other] + now.duration[other]
        )
    before = now.job_before[op]
    return before == NONE or (
        before != other and now.start[before] < now.start[other] + now.duration[other]
    )


@inlined
def promised(now: Schedule, path: Indices, source: int, target: int) -> float:
    """Return the makespan that a move promises (Balas and Vazacopoulos 1998).

    This is an estimate of the longest path through the operations whose order the move changes.
    """
    low, high = min(source, target), max(source, target)
    size, shift = high - low + 1, 1 if target > source else -1
    starts = np.empty(size)
    end = ready(now, path[low], False)
    for k in range(size):
        op = path[low + (k + shift) % size]  # the new order is rotated by one place
        starts[k] = max(ready(now, op, True), end)
        end = starts[k] + now.duration[op]
    longest = 0.0
    after = rest(now, path[high], False)
    for k in range(size - 1, -1, -1):
        op = path[low + (k + shift) % size]
        after = max(rest(now, op, True), after)
        longest = max(longest, starts[k] + now.duration[op] + after)
        after += now.duration[op]
    return longest
