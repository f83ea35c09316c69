"""Use one solver in many threads, then in processes: the answers equal those of one thread."""

import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import ptrnet
from ptrnet.parallel import ordered_map
from ptrnet.solver import Solver
from tests.stress.programs import only_in_stress
from tests.support.small_models import small_solver

THREADS, JOBS = 64, 2
SIZES = (5, 8, 13)


def solve(solver: Solver, points: list[np.ndarray]) -> Any:
    return [answer.tolist() for answer in solver.solve(points)]


def solve_beam(solver: Solver, points: list[np.ndarray]) -> Any:
    return [answer.tolist() for answer in solver.solve(points, ptrnet.Beam(3))]


def answer(solver: Solver, points: list[np.ndarray]) -> Any:
    return [(a.outputs.tolist(), round(a.log_prob, 4)) for a in solver.answer(points)]


def attend(solver: Solver, points: list[np.ndarray]) -> Any:
    return [tokens.tolist() for _, tokens in solver.attention(points)]


def label(solver: Solver, points: list[np.ndarray]) -> Any:
    return [outputs.tolist() for _, outputs in ptrnet.label("hull", points)]


WAYS = (solve, solve_beam, answer, attend, label)


class Work(NamedTuple):
    """Instances, several uses of a solver, and the result of each use in a single thread."""

    solver: Solver
    batches: list[list[np.ndarray]]
    expected: dict[tuple[str, int], Any]


def _prepare() -> Work:
    solver, rng = small_solver(scale=8.0), np.random.default_rng(0)
    batches = [[rng.random((n, 2)) for n in SIZES[: k % 3 + 1]] for k in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {
            (way.__name__, k): way(solver, batch) for way in WAYS for k, batch in enumerate(batches)
        }
    return Work(solver, batches, expected)


def _draw(work: Work, rng: np.random.Generator, count: int) -> list[tuple[Callable, int]]:
    ways = rng.integers(len(WAYS), size=count)
    return [(WAYS[w], int(k)) for w, k in zip(ways, rng.integers(8, size=count), strict=True)]


def _threads(work: Work, rng: np.random.Generator, folder: Path) -> str:
    """All threads begin at the same moment. Afterwards the warning filters are as before."""
    before, start = list(warnings.filters), threading.Barrier(THREADS)

    def use(way: Callable, k: int) -> Any:
        start.wait(60)
        return way(work.solver, work.batches[k])

    calls = _draw(work, rng, THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        results = [pool.submit(use, way, k) for way, k in calls]
    for (way, k), result in zip(calls, results, strict=True):
        assert result.result() == work.expected[way.__name__, k], (way.__name__, k)
    assert warnings.filters == before, "threads have left filters of warnings behind"
    return "as alone"


def _use(solver: Solver, call: tuple[Callable, list[np.ndarray]]) -> Any:
    way, batch = call
    return way(solver, batch)


def _processes(work: Work, rng: np.random.Generator, folder: Path) -> str:
    calls = _draw(work, rng, 16)
    sent = [(way, work.batches[k]) for way, k in calls]
    results = ordered_map(partial(_use, work.solver), sent, JOBS)
    for (way, k), result in zip(calls, results, strict=True):
        assert result == work.expected[way.__name__, k], (way.__name__, k)
    return "as alone"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("case", "count"), [(_threads, 100), pytest.param(_processes, 50, marks=only_in_stress)]
)
def test_a_shared_solver_answers_as_in_one_thread(case, count, try_cases):
    try_cases(partial(case, _prepare()), count)
