"""An ordered map in many processes, on this machine or on a cluster, by joblib.

We import joblib only for several processes or a cluster, because the import takes a tenth of the
time until a first answer.
"""

import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from numbers import Integral
from typing import Any, TypeVar

from ptrnet.errors import InputError, KilledError, PtrnetError, check_package, short, unknown

Item = TypeVar("Item")
Result = TypeVar("Result")

LOCAL = "local"
BACKENDS = (LOCAL, "dask", "ray")
_ROUND = 32  # joblib gets this many items for each process at a time
_WATCH_EVERY = 0.5  # seconds; how often `end_with` checks the parent


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int, backend: str = LOCAL
) -> Iterator[Result]:
    """Return an iterator over the results of `function` for each item, in the order of the items.

    At most 32 items for each process are read ahead of the results, so the items may be endless.
    The local backend starts no process for a single item.

    Args:
        function: a function that other processes can import, or a partial of such a function.
        items: the arguments of the function. The calling thread draws them.
        jobs: number of processes; -1 for one per core. With 1, this process does the work, except
            on a cluster.
        backend: "local", "dask" or "ray". Dask and Ray send the work to the cluster that their
            settings name. If the settings name no cluster, Dask and Ray start a cluster on this
            machine. Call `check_processes` first.

    Raises:
        InputError: the backend's cluster cannot be reached.
        KilledError: the system killed a process.

    Examples:
        >>> list(ordered_map(math.factorial, [3, 4, 5], jobs=2))
        [6, 24, 120]
    """
    rest = iter(items)
    if backend == LOCAL and jobs != 1:
        first = list(islice(rest, 2))
        rest, jobs = chain(first, rest), jobs if len(first) == 2 else 1
    if backend == LOCAL and jobs == 1:
        return map(function, rest)
    return _map_in_processes(function, rest, jobs, backend)


def _map_in_processes(
    function: Callable[[Item], Result], rest: Iterator[Item], jobs: int, backend: str
) -> Iterator[Result]:
    from joblib import Parallel, delayed, effective_n_jobs

    # We pass the items to joblib in lists (`batch`). joblib would read `rest` in another thread and
    # lose the errors of `rest`. With Ray, all results of a list arrive together, so ask for a list.
    return_as = "list" if backend == "ray" else "generator"
    with (
        {LOCAL: _local, "dask": _dask, "ray": _ray}[backend](jobs),
        Parallel(n_jobs=jobs, return_as=return_as) as processes,
    ):
        size = _ROUND * effective_n_jobs(jobs)
        batch = list(islice(rest, size))
        while batch:
            results = processes(delayed(_result_or_error)(function, item) for item in batch)
            batch = []
            try:
                for result in results:
                    if isinstance(result, PtrnetError):
                        for _ in results:  # wait for the items that are being computed
                            pass
                        raise result
                    yield result
                    batch += islice(rest, 1)  # draws the next round while processes compute
            except BrokenExecutor:
                raise KilledError(
                    "a process was killed, probably because memory was short; fewer "
                    "processes (jobs) need less"
                ) from None
            finally:  # if the caller stops early, joblib warns about the results that are left
                if isinstance(results, Generator):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        results.close()
            batch += islice(rest, size - len(batch))


def _result_or_error(function: Callable[[Item], Result], item: Item) -> Result | PtrnetError:
    """Return `function(item)`, or the PtrnetError that the function raises.

    If errors were raised in processes, joblib would pass on the error with the earliest time. The
    caller must get the error of the failing item with the lowest index. So we return errors.
    """
    try:
        return function(item)
    except PtrnetError as error:
        return error


def check_processes(jobs: int, backend: str) -> None:
    """Check arguments of `ordered_map` before any work is done.

    Raises:
        InputError: the number of processes is not 1, 2, ... or -1; or the backend is unknown.
        MissingExtraError: the backend's package is not installed.
    """
    is_whole = isinstance(jobs, Integral) and not isinstance(jobs, bool)
    if not is_whole or (jobs < 1 and jobs != -1):
        raise InputError(f"jobs: expected 1 or more, or -1 for one per core, got {short(jobs)}")
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    if backend != LOCAL:
        package = "distributed" if backend == "dask" else backend
        check_package(package, f"backend {backend}", backend)


def _local(jobs: int) -> AbstractContextManager[Any]:
    from joblib import parallel_config

    # joblib replaces a worker that has grown by 300 MB, which happens with PyTorch and compiled
    # code. No result is lost, so we ignore joblib's warning. If the user turns warnings into
    # errors, this warning would end the thread that waits for results.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
    return parallel_config(
        backend="loky", n_jobs=jobs, initializer=_start_worker, initargs=(os.getpid(),)
    )


def _start_worker(parent: int) -> None:
    """Ignore Ctrl-C, because the parent ends its workers. End this worker if the parent is killed.

    The parent sends its own process id `parent`. If the parent is killed while the worker starts,
    `os.getppid` already returns another id. Without `parent`, the worker would not notice that its
    parent is gone, and would wait five minutes for work.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)


def end_with(parent: int) -> None:
    """End this process soon after its parent, the process with the id `parent`, has ended."""

    def wait() -> None:
        while os.getppid() == parent:  # an orphan gets another parent
            time.sleep(_WATCH_EVERY)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _dask(jobs: int) -> Iterator[None]:
    """Use the scheduler that DASK_SCHEDULER_ADDRESS or Dask's settings name, or start a cluster."""
    import dask
    from distributed import Client
    from joblib import parallel_config

    address = dask.config.get("scheduler-address", None)
    workers = None if jobs < 0 else jobs
    environment = dict(os.environ)
    try:
        client = (
            Client(address)  # type: ignore[no-untyped-call]
            if address
            else Client(  # type: ignore[no-untyped-call]
                n_workers=workers, threads_per_worker=1, dashboard_address=None
            )
        )
    except (OSError, ValueError) as error:
        raise InputError(f"backend dask: no scheduler at {address}: {error}") from None
    finally:
        # A new cluster sets OMP_NUM_THREADS=1, which processes that we start later would inherit.
        os.environ.clear()
        os.environ.update(environment)
    with client, parallel_config(backend="dask", n_jobs=jobs):
        yield


@contextmanager
def _ray(jobs: int) -> Iterator[None]:
    """Use the cluster that RAY_ADDRESS names, or start a cluster."""
    import ray
    from joblib import parallel_config
    from ray.util.joblib import register_ray

    address = os.environ.get("RAY_ADDRESS")
    cores = None if jobs < 0 or address else jobs
    try:
        ray.init(address, num_cpus=cores, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError) as error:
        raise InputError(f"backend ray: no cluster at {address}: {error}") from None
    register_ray()  # type: ignore[no-untyped-call]
    try:
        with parallel_config(backend="ray", n_jobs=jobs):
            yield
    finally:
        ray.shutdown()
