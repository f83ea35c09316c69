"""The job shop: jobs whose operations need machines, scheduled to end as early as possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from ptrnet.errors import InputError, short
from ptrnet.problems.base import STAY, Problem, State, at, columns, is_at, mean, to_array
from ptrnet.settings import setting
from ptrnet.tasks.base import Bar, Drawing
from ptrnet.types import Floats, Indices, Sizes, pad, trim

MOST = 20  # maximum number of operations of a job, and maximum number of machines
NONE = -1  # fills the array of machines if a job has fewer than MOST operations


@dataclass(frozen=True)
class JobShop(Problem):
    """The problem `job-shop`: each entry of an answer is a job, whose next operation is scheduled.

    An element is a job. The operations of a job have a fixed order, so an answer only names the
    job, once for each operation. The cost is the makespan: the time at which the last operation
    ends.

    In files, an instance has the key `"jobs"`: for each job a list of pairs `[machine, duration]`,
    with machines numbered from 0. In arrays, an element has 20 machines and then 20 durations.
    Machine -1 means that there is no operation.

    The network only gives active schedules (Giffler and Thompson 1960). In an active schedule, no
    operation could start earlier unless another operation started later. At least one optimal
    schedule is active. Random instances are drawn like those of Taillard (1993): durations are 1 to
    99, and each job visits all machines in a random order.
    """

    name: ClassVar[str] = "job-shop"
    labellers: ClassVar[tuple[str, ...]] = ("tabu-search", "cp-sat")
    may_be_unproved: ClassVar[bool] = True
    element_fields: ClassVar[dict[str, int]] = {"machine": MOST, "duration": MOST}
    repeats: ClassVar[bool] = True
    array_api: ClassVar[bool] = True
    recipe: ClassVar[dict[str, Any]] = {**Problem.recipe, "n": "6-10", "batch_size": 16}

    machines: Sizes = setting(
        Sizes(6), "machines of random instances, such as 6 or 5-20; each batch draws one number"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.machines[-1] > MOST:
            raise InputError(f"machines: expected at most {MOST}, got {self.machines}")

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        machines = self.machines[0]
        if len(self.machines) > 1:
            machines = int(rng.choice(np.array(self.machines)))
        order = np.tile(np.arange(machines, dtype=float), (count, n, 1))
        shape = (count, n, MOST)
        machine, duration = np.full(shape, float(NONE)), np.zeros(shape)
        machine[..., :machines] = rng.permuted(order, axis=-1)
        duration[..., :machines] = rng.integers(1, 100, (count, n, machines))
        return self.pack(machine=machine, duration=duration)

    def instance_error(self, inputs: Floats) -> str | None:
        machine, duration = inputs[:, :MOST], inputs[:, MOST:]
        exists = machine != NONE
        wrong = (machine != np.round(machine)) | (machine < NONE) | (machine >= MOST)
        if wrong.any():
            return f"expected machines 0 to {MOST - 1}, got {machine[wrong][0]:g}"
        if (exists[:, 1:] & ~exists[:, :-1]).any() or not exists[:, 0].all():
            return "expected at least one operation of each job, and machine -1 only at its end"
        if (duration < 0).any():
            return f"expected durations of 0 or more, got {duration.min():g}"
        return None

    @property
    def field_names(self) -> tuple[str, ...]:
        return ("jobs",)

    def max_length(self, n: int) -> int:
        return n * MOST

    def start(self, instance: Floats) -> State:
        fields = self.unpack(instance)
        xp = array_namespace(instance)
        of_jobs, of_machines = instance[..., 0], instance[:, 0, :MOST]
        return {
            "machine": xp.astype(fields["machine"], xp.int64),
            "duration": fields["duration"],
            # The number of operations of each job that have been started.
            "done": xp.zeros_like(of_jobs, dtype=xp.int64),
            "job_free": xp.zeros_like(of_jobs),
            "machine_free": xp.zeros_like(of_machines),
        }

    def _next(self, state: State) -> tuple[Any, Any, Any, Any]:
        """Return whether each job has a next operation, and facts about this operation.

        The facts are its machine, its duration and its earliest start. All arrays are `(B, n)`.
        """
        xp = array_namespace(state["done"])
        done = xp.clip(state["done"], max=MOST - 1)[..., None]
        machine = xp.take_along_axis(state["machine"], done, axis=2)[..., 0]
        duration = xp.take_along_axis(state["duration"], done, axis=2)[..., 0]
        waits = (state["done"] < MOST) & (machine != NONE)
        free = xp.take_along_axis(state["machine_free"], xp.clip(machine, min=0), axis=1)
        return waits, machine, duration, xp.maximum(state["job_free"], free)

    def allowed(self, state: State) -> NDArray[np.bool_]:
        """Allow operations that lead to active schedules (Giffler and Thompson 1960).

        Find the operation that could end first, and its earliest end. The allowed operations are
        this operation, and the operations on the same machine that can start before this end.
        """
        xp = array_namespace(state["done"])
        waits, machine, duration, start = self._next(state)
        end = xp.where(waits, start + duration, np.inf)
        earliest_end = xp.min(end, axis=1, keepdims=True)
        is_first = waits & (end == earliest_end)
        # Machines `(B, MOST)` of the operations that can end first.
        ends_first = xp.any(is_first[..., None] & (machine[..., None] == _all(machine)), axis=1)
        on_those = xp.take_along_axis(ends_first, xp.clip(machine, min=0), axis=1)
        allowed: NDArray[np.bool_] = waits & on_those & ((start < earliest_end) | is_first)
        return allowed

    def remaining(self, state: State) -> NDArray[np.bool_]:
        waits: NDArray[np.bool_] = self._next(state)[0]
        return waits

    def makespans_by_rule(self, state: State) -> Floats:
        """Return for each job the makespan `(B, n)` if this job is next and a rule then takes over.

        The rule always starts the operation that can start first. If several operations can start
        at this time, the rule takes the operation of the job with the most work left. Jobs that are
        not allowed have infinite makespans.
        """
        from ptrnet.problems import rollouts  # needs numba, so import it only here

        names = ("machine", "duration", "done", "job_free", "machine_free")
        makespans: Floats = rollouts.makespans(*(state[k] for k in names), self.allowed(state))
        return makespans

    def features(self, state: State) -> tuple[Floats, Floats]:
        xp = array_namespace(state["done"])
        waits, machine, duration, start = self._next(state)
        exists = state["machine"] != NONE
        is_left = exists & (_all(machine) >= state["done"][..., None])
        left = xp.where(is_left, state["duration"], 0.0)
        work, count = xp.sum(left, axis=2), xp.sum(xp.astype(is_left, xp.int64), axis=2)
        # The work left for each machine, `(B, MOST)`.
        loads = [xp.where(state["machine"] == m, left, 0.0) for m in range(MOST)]
        load = xp.stack([xp.sum(of_machine, axis=(1, 2)) for of_machine in loads], axis=-1)
        operations = xp.sum(xp.astype(exists, xp.float64), axis=(1, 2))
        unit = xp.sum(state["duration"], axis=(1, 2)) / xp.clip(operations, min=1.0)
        unit = xp.where(unit > 0, unit, 1.0)[:, None]
        now = xp.min(xp.where(waits, start, np.inf), axis=1, keepdims=True)
        now = xp.where(xp.isfinite(now), now, 0.0)
        bound = xp.where(waits, start + work, 0.0)  # a lower bound of the job's end
        machine_bound = xp.max(state["machine_free"] + load, axis=1, keepdims=True)
        longest = xp.maximum(xp.max(bound, axis=1, keepdims=True), machine_bound)
        of_machine = xp.take_along_axis(load, xp.clip(machine, min=0), axis=1)
        free = xp.take_along_axis(state["machine_free"], xp.clip(machine, min=0), axis=1)
        # Each job also has features of the operation after its next one (called second here): the
        # duration, the work left for the machine, and the time at which the machine is free.
        second = xp.clip(state["done"] + 1, max=MOST - 1)[..., None]
        has_second = count > 1
        second_duration = xp.take_along_axis(left, second, axis=2)[..., 0]
        second_duration = xp.where(has_second, second_duration, 0.0)
        second_machine = xp.take_along_axis(state["machine"], second, axis=2)[..., 0]
        second_machine = xp.where(has_second, second_machine, 0)
        of_second = xp.take_along_axis(load, second_machine, axis=1)
        of_second = xp.where(has_second, of_second, 0.0)
        second_free = xp.take_along_axis(state["machine_free"], second_machine, axis=1)
        second_free = xp.where(has_second, second_free, 0.0)
        # The network decides which job is next on one machine. If jobs on several machines are
        # allowed, which is rare, we take the machine with the lowest number. The network sees when
        # each job can reach this machine, how long the job takes there, and how much of the job's
        # work follows.
        allowed = self.allowed(state)
        decided = xp.min(xp.where(allowed, machine, MOST), axis=1)[:, None, None]
        on_it = is_left & (state["machine"] == decided)
        visits = xp.any(on_it, axis=2)
        visit = xp.argmax(xp.astype(on_it, xp.int64), axis=2)[..., None]
        visit_work, visit_duration = (
            xp.take_along_axis(part, visit, axis=2)[..., 0]
            for part in (xp.cumulative_sum(left, axis=2), left)
        )
        reaches = xp.clip(start + visit_work - visit_duration - now, min=0.0)
        # We divide times that grow with the number of jobs by a lower bound of the time left. So a
        # network can answer instances with more jobs than it was trained on.
        time_left = xp.where(longest > now, longest - now, 1.0)
        by_rule = self.makespans_by_rule(state)
        is_open = xp.any(allowed, axis=1, keepdims=True)
        shortest = xp.where(is_open, xp.min(by_rule, axis=1, keepdims=True), now)
        lost = xp.where(allowed, by_rule, shortest) - shortest
        lost = xp.where(allowed, lost / time_left, 1.0)
        of_jobs = [
            lost,
            xp.log(lost + 1e-3) / 3,
            duration / unit,
            second_duration / unit,
            of_second / time_left,
            xp.log1p(xp.clip(second_free - now, min=0.0) / unit),
            visits,
            xp.where(visits, xp.log1p(reaches / unit), 0.0),
            xp.where(visits, visit_duration / unit, 0.0),
            xp.where(visits, (work - visit_work) / time_left, 0.0),
            xp.log1p(xp.clip(start - now, min=0.0) / unit),
            start == now,
            xp.clip((state["job_free"] - free) / (5 * unit), min=-2.0, max=2.0),
            work / time_left,
            count / 20,
            of_machine / time_left,
            (longest - bound) / time_left,
            (longest - free - of_machine) / time_left,
            allowed,
            work / xp.clip(xp.max(work, axis=1, keepdims=True), min=1e-12),
        ]
        of_whole = [
            xp.log1p(time_left / unit)[:, 0] / 3,
            xp.log1p(xp.astype(xp.sum(count, axis=1), xp.float64)) / 3,
            mean(waits),
            ((shortest - now) / time_left)[:, 0],
        ]
        return xp.where(waits[..., None], columns(of_jobs), 0.0), columns(of_whole)

    def step(self, state: State, choice: Indices) -> State:
        xp = array_namespace(choice)
        _, machine, duration, start = (at(part, choice) for part in self._next(state))
        end = (start + duration)[:, None]
        is_chosen = is_at(choice, state["done"].shape[1])
        return {
            **state,
            "done": state["done"] + xp.astype(is_chosen, xp.int64),
            "job_free": xp.where(is_chosen, end, state["job_free"]),
            "machine_free": xp.where(is_at(machine, MOST), end, state["machine_free"]),
        }

    def cost(self, instance: Floats, answers: Indices) -> Floats:
        """Return the makespan. Operations start as soon as their job and machine are free."""
        fields = self.unpack(instance)
        rows = np.arange(len(answers))
        done = np.zeros(instance.shape[:2], np.int64)
        job_free, machine_free = np.zeros(instance.shape[:2]), np.zeros((len(answers), MOST))
        for job in answers.T:
            operation = done[rows, job]
            machine = fields["machine"][rows, job, operation].astype(np.int64)
            start = np.maximum(job_free[rows, job], machine_free[rows, machine])
            end = start + fields["duration"][rows, job, operation]
            job_free[rows, job] = machine_free[rows, machine] = end
            done[rows, job] += 1
        return job_free.max(1)  # type: ignore[no-any-return]

    def answer_errors(self, inputs: Floats, answers: Sequence[Indices]) -> list[str | None]:
        """Return for each answer why it is invalid, or None if it is an order of all operations.

        A valid answer may have a schedule that is not active.
        """
        operations = (inputs[..., :MOST] != NONE).sum(-1)
        errors: list[str | None] = []
        for k, answer in enumerate(answers):
            expected = operations if operations.ndim == 1 else operations[k]
            counts = np.bincount(answer, minlength=len(expected))
            (wrong,) = np.nonzero(counts != expected)
            errors.append(
                f"job {wrong[0]}: expected {expected[wrong[0]]} operations, got {counts[wrong[0]]}"
                if len(wrong)
                else None
            )
        return errors

    def canonicalize(self, inputs: Floats, answers: Sequence[Indices]) -> Sequence[Indices]:
        """Return active schedules in which no operation ends later than in the answers.

        We build each schedule step by step. Usually we take A, the allowed operation that starts
        first in the answer. The exception is B, an operation that can end first: if B can end
        before or when A starts in the answer, B does not delay A, so we take B. A zero-length
        operation that starts together with A is such a B. After A, it would start late.
        """
        batch, n, _ = inputs.shape
        starts = np.full((batch, n, MOST + 1), np.inf)
        state, (jobs, lengths) = self.start(inputs), pad(answers)
        for t, job in enumerate(jobs.T):
            moves = t < lengths
            rows = np.flatnonzero(moves)
            starts[rows, job[rows], state["done"][rows, job[rows]]] = self._next(state)[3][
                rows, job[rows]
            ]
            state = self.advance(state, np.where(moves, job, STAY))
        state, indices = self.start(inputs), np.zeros_like(jobs)
        for t in range(indices.shape[1]):
            waits, _, duration, start = self._next(state)
            end = np.where(waits, start + duration, np.inf)
            earliest = end.min(1, keepdims=True)
            order = np.take_along_axis(starts, state["done"][..., None], 2)[..., 0]
            can_end_first = end == earliest
            order = np.where(can_end_first, np.minimum(order, earliest), order)
            order = np.where(self.allowed(state), order, np.inf)
            is_least = order == order.min(1, keepdims=True)
            job = (is_least * (1 + can_end_first)).argmax(1)
            moves = t < lengths
            indices[:, t] = np.where(moves, job, 0)
            state = self.advance(state, np.where(moves, job, STAY))
        return trim(indices, lengths)

    def backwards(self, inputs: Floats) -> Floats:
        """Return the instances with the operations of each job in reverse order."""
        operations = (inputs[..., :MOST] != NONE).sum(-1, keepdims=True)
        k = np.arange(MOST)
        reverse = np.where(k < operations, operations - 1 - k, k)
        return np.take_along_axis(inputs, np.concatenate([reverse, reverse + MOST], -1), -1)

    def answers_backwards(self, inputs: Floats, answers: Sequence[Indices]) -> list[Indices]:
        """Return answers to `backwards(inputs)`: operations that end last come first."""
        state, operations = self.start(inputs), []
        rows, (jobs, lengths) = np.arange(len(inputs)), pad(answers)
        for t, job in enumerate(jobs.T):
            _, _, duration, start = (part[rows, job] for part in self._next(state))
            operations.append((job, -state["done"][rows, job], duration, -(start + duration)))
            state = self.advance(state, np.where(t < lengths, job, STAY))
        for row, length in enumerate(lengths):
            # `lexsort` sorts by its last key first. If several operations end together, operations
            # of duration 0 come first, because these start last in the schedule.
            keys = np.array([[key[row] for key in keys] for keys in operations[:length]])
            jobs[row, :length] = jobs[row, np.lexsort(keys.T)]
        return trim(jobs, lengths)

    def from_fields(self, fields: Mapping[str, Any], source: str) -> Floats:
        if "jobs" not in fields:
            raise InputError(f'{source}: expected the key "jobs"')
        jobs = fields["jobs"]
        if not isinstance(jobs, list) or not jobs:
            raise InputError(f'{source}: "jobs": expected a list of jobs, got {short(jobs)}')
        machine, duration = np.full((len(jobs), MOST), float(NONE)), np.zeros((len(jobs), MOST))
        for k, job in enumerate(jobs):
            operations = to_array(job)
            is_list = operations.ndim == 2 and operations.shape[1] == 2 and len(operations) <= MOST
            if not is_list or operations.dtype.kind not in "iuf":
                raise InputError(
                    f'{source}: "jobs": job {k}: expected 1 to {MOST} pairs [machine, duration]'
                )
            machine[k, : len(job)], duration[k, : len(job)] = operations.T
        return self.pack(machine=machine[None], duration=duration[None])[0]

    def to_fields(self, inputs: Floats) -> dict[str, Any]:
        jobs = []
        for machine, duration in zip(inputs[:, :MOST], inputs[:, MOST:], strict=True):
            exists = machine != NONE
            pairs = zip(machine[exists].tolist(), duration[exists].tolist(), strict=True)
            jobs.append([[int(m), int(d) if d == int(d) else d] for m, d in pairs])
        return {"jobs": jobs}

    def instance_format(self) -> dict[str, Any]:
        return {"kind": "jobs", "most": MOST}

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """Draw a Gantt chart: a row for each machine, a color for each job."""
        state, bars = self.start(inputs[None]), []
        for job in outputs:
            _, machine, duration, start = (part[0, job] for part in self._next(state))
            bars.append(Bar(int(machine), float(start), float(duration), int(job)))
            state = self.step(state, np.array([job]))
        axes = ("time (numbers on bars: jobs)", "machine")
        return Drawing(np.zeros((0, 2)), [], axes=axes, bars=bars)


def _all(machine: Any) -> Any:
    """Return the numbers of all machines, `(MOST,)`, as an array like `machine`."""
    return array_namespace(machine).arange(MOST, device=device(machine))


TASK = JobShop
