"""A map in many processes: who computes makes no difference."""

import math
import os
import signal
import subprocess
import sys
import time

import pytest

from ptrnet.errors import InputError, KilledError, MissingExtraError
from ptrnet.parallel import BACKENDS, check_backend, check_jobs, ordered_map

ITEMS = list(range(50))
EXPECTED = [math.factorial(k) for k in ITEMS]


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_keep_the_order(jobs):
    assert list(ordered_map(math.factorial, ITEMS, jobs)) == EXPECTED


def test_work_is_taken_as_it_goes():
    """An endless list of work must not be read to its end."""

    def endless():
        k = 0
        while True:
            yield k % 20
            k += 1

    results = ordered_map(math.factorial, endless(), 1)
    assert [next(results) for _ in range(3)] == [1, 1, 2]


def is_killed(k):
    if k == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return k


def test_a_process_that_is_killed_is_one_line():
    """As for want of memory: it was a traceback of joblib's."""
    with pytest.raises(KilledError, match=r"a process was killed.* \(jobs\) need less"):
        list(ordered_map(is_killed, range(9), 2))
    assert list(ordered_map(math.factorial, ITEMS, 2)) == EXPECTED


def stops(k):
    if k == 5:
        raise InputError("five")
    return k


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_of_the_work_and_of_the_items_arrive(jobs):
    """Pytest sees what a thread of joblib's would swallow."""

    def items():
        yield from range(3)
        raise InputError("no more")

    with pytest.raises(InputError, match="no more"):
        list(ordered_map(math.factorial, items(), jobs))
    with pytest.raises(InputError, match="five"):
        list(ordered_map(stops, range(100), jobs))


def test_items_are_drawn_while_others_are_computed():
    """Not all of a round at its beginning, where the processes would wait for them."""
    drawn = []

    def items():
        for k in range(200):
            drawn.append(k)
            yield k

    results = ordered_map(math.factorial, items(), 2)
    counts = []
    for _ in range(64):
        next(results)
        counts.append(len(drawn))
    assert counts[0] == 64 and counts[-1] == 64 + 63
    results.close()


# The thread of joblib's that hands items out may meet the end of what it hands out, and say so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_caller_may_leave_early(jobs):
    left_early = ordered_map(math.factorial, range(500), jobs)
    assert next(left_early) == 1
    left_early.close()


@pytest.fixture
def environment():
    """The variables of this process, which a Dask cluster changes, and which are restored."""
    before = dict(os.environ)
    yield before
    os.environ.clear()
    os.environ.update(before)


WORKING = """
import os, sys, time
from ptrnet.parallel import ordered_map

def work(folder):
    open(f"{folder}/{os.getpid()}", "w").close()
    time.sleep(600)

if __name__ == "__main__":
    list(ordered_map(work, [sys.argv[1]] * 2, 2))
"""


def wait_until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(process):
    """Whether it works or waits: one that has ended may stay in the table until it is reaped."""
    command = ["ps", "-o", "stat=", "-p", str(process)]
    state = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    return state != "" and not state.startswith("Z")


@pytest.mark.parametrize("deadly", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent(tmp_path, deadly):
    (tmp_path / "workers").mkdir()
    (tmp_path / "working.py").write_text(WORKING)
    with subprocess.Popen(
        [sys.executable, tmp_path / "working.py", tmp_path / "workers"]
    ) as parent:
        try:
            wait_until(lambda: len(list((tmp_path / "workers").iterdir())) == 2)
            workers = [int(path.name) for path in (tmp_path / "workers").iterdir()]
            assert all(map(is_running, workers))
            parent.send_signal(deadly)
            parent.wait(60)
        finally:
            parent.kill()
    wait_until(lambda: not any(map(is_running, workers)))


def test_workers_are_used_again():
    first, second = (set(ordered_map(process_id, range(20), 2)) for _ in range(2))
    assert first & second and os.getpid() not in first | second


def process_id(_):
    return os.getpid()


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_started_here_leaves_the_environment(environment):
    pytest.importorskip("distributed")
    assert list(ordered_map(math.factorial, ITEMS, 2, "dask")) == EXPECTED
    threads = "OMP_NUM_THREADS"
    assert os.environ.get(threads) == environment.get(threads)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_of_two_workers(monkeypatch, environment):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    ) as cluster:
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.scheduler_address)
        dask = pytest.importorskip("dask")
        with dask.config.set({"scheduler-address": cluster.scheduler_address}):
            assert list(ordered_map(math.factorial, ITEMS, -1, "dask")) == EXPECTED


def test_unknown_and_missing_backends(monkeypatch):
    with pytest.raises(InputError, match="did you mean 'dask'"):
        check_backend("dusk")
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"ptrnet\[ray\]"):
        check_backend("ray")
    assert set(BACKENDS) == {"local", "dask", "ray"}


@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_started_here():
    pytest.importorskip("ray")
    assert list(ordered_map(math.factorial, ITEMS, 2, "ray")) == EXPECTED


def test_one_item_starts_no_other_process(monkeypatch):
    monkeypatch.setattr("joblib.Parallel", None)
    assert list(ordered_map(math.factorial, [4], 2)) == [24]
    assert list(ordered_map(math.factorial, [], -1)) == []


@pytest.mark.parametrize("jobs", [0, -2, 1.5, "2"])
def test_numbers_of_processes_that_are_none(jobs):
    with pytest.raises(InputError, match=r"^jobs: expected 1 or more, or -1 for one a core, got"):
        check_jobs(jobs)
