"""A map in many processes, here or on a cluster, through joblib.

Which is imported where there are many: it takes a tenth of the time that one answer does.
"""

import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from ptrnet.errors import (
    InputError,
    KilledError,
    MissingExtraError,
    PtrnetError,
    short,
    unknown,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

LOCAL = "local"
BACKENDS = (LOCAL, "dask", "ray")
_WATCH_EVERY = 0.5  # seconds between a worker's looks at its parent
_ROUND = 32  # items for each process that are handed out at a time


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int, backend: str = LOCAL
) -> Iterator[Result]:
    """`function` of each item, in the order of the items.

    At most a few items for each process are under way at a time. Other processes are started
    only where there is a second item.

    Args:
        function: one that other processes can import, or a partial of one.
        items: what it is called with.
        jobs: processes; -1 for one a core. One works in this process, unless on a cluster.
        backend: `local`; `dask` or `ray` send the work to their cluster, or to one that they
            start here where none is named.

    Raises:
        InputError: an unknown backend, or a cluster that is not reached.
        MissingExtraError: the backend's package is not installed.
    """
    rest = iter(items)
    if backend == LOCAL and jobs != 1:
        first = list(islice(rest, 2))
        rest, jobs = chain(first, rest), jobs if len(first) == 2 else 1
    if backend == LOCAL and jobs == 1:
        yield from map(function, rest)
        return
    from joblib import Parallel, delayed

    # Round by round, so that items are drawn in this thread: joblib would draw them in one of
    # its own, where an error of theirs is lost. Ray's backend gives results only all at once.
    return_as = "list" if backend == "ray" else "generator"
    drawn = _with_error_last(rest)
    with _backend(backend, jobs), Parallel(n_jobs=jobs, return_as=return_as) as parallel:
        size = _ROUND * parallel._effective_n_jobs()
        batch = list(islice(drawn, size))
        while batch:
            error = batch.pop() if isinstance(batch[-1], _ItemError) else None
            results = iter(parallel(delayed(_call)(function, item) for item in batch))
            batch = []
            try:
                for result in results:
                    if isinstance(result, PtrnetError):
                        raise result
                    yield result
                    batch += islice(drawn, 1)  # of the next round: others compute meanwhile
            except PtrnetError:
                for _ in results:  # what is under way ends by itself
                    pass
                raise
            except BrokenExecutor:
                raise KilledError(
                    "a process was killed, as the system does where memory is short; fewer of "
                    "them (jobs) need less"
                ) from None
            except BaseException:  # an interrupt, or a caller that takes no further result
                if return_as == "generator":
                    _abort(results)
                raise
            if isinstance(error, _ItemError):
                raise error.error
            batch += islice(drawn, size - len(batch))


class _ItemError(NamedTuple):
    """What was raised where an item should have come."""

    error: Exception


def _with_error_last(items: Iterator[Item]) -> Iterator[Item | _ItemError]:
    """The items; instead of raising an error, it as the last: it is due when those are done."""
    try:
        yield from items
    except Exception as error:
        yield _ItemError(error)


def _abort(results: Generator[Any, None, None]) -> None:
    """Ends the processes that compute results, and leaves those that nobody took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joblib warns that they were not taken
        results.close()


def _call(function: Callable[[Item], Result], item: Item) -> Result | PtrnetError:
    """Returns what the user can mend: raised, that of a later item might come first."""
    try:
        return function(item)
    except PtrnetError as error:
        return error


def check_jobs(jobs: int) -> None:
    """Refuses a number of processes other than 1, 2, ... and -1."""
    if not isinstance(jobs, int) or (jobs < 1 and jobs != -1):
        raise InputError(f"jobs: expected 1 or more, or -1 for one a core, got {short(jobs)}")


def check_backend(backend: str) -> None:
    """Refuses a backend that is unknown, or whose package is not installed."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    try:
        if backend == "dask":
            import distributed  # noqa: F401
        if backend == "ray":
            import ray  # noqa: F401
    except ImportError:
        raise MissingExtraError(f"backend {backend}", backend) from None


def _backend(backend: str, jobs: int) -> AbstractContextManager[Any]:
    check_backend(backend)
    return {LOCAL: local_processes, "dask": _dask, "ray": _ray}[backend](jobs)


def local_processes(jobs: int) -> AbstractContextManager[Any]:
    """The settings under which joblib's processes here end with this one, and only then.

    Args:
        jobs: processes; -1 for one a core.
    """
    from joblib import parallel_config

    return parallel_config(backend="loky", n_jobs=jobs, initializer=_starter(os.getpid()))


@cache
def _starter(parent: int) -> Callable[[], None]:
    """One object for a process: by it joblib knows that running workers can be used again."""
    return partial(_start_worker, parent)


def _start_worker(parent: int) -> None:
    """Called in each worker when it starts; `parent` is the number of the process it works for."""
    # One that is interrupted with its parent could die with a lock in its hands.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from joblib.externals.loky import process_executor

    # It takes 300 MB that come after the first item for a leak, as PyTorch and compiled code may,
    # and ends. The warning of that, where warnings are errors, ends the thread that waits for it.
    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize
    end_with(parent)


def end_with(parent: int) -> None:
    """Lets this process end soon after its parent does, by whatever; `parent` is its number."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """Ends this process soon after its parent, which may have been killed and could not end it."""
    while os.getppid() == parent:  # an orphan has another parent
        time.sleep(_WATCH_EVERY)
    os._exit(1)


@contextmanager
def _dask(jobs: int) -> Iterator[None]:
    """The scheduler that DASK_SCHEDULER_ADDRESS or Dask's configuration names, or one made here."""
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
    finally:  # a cluster made here leaves OMP_NUM_THREADS=1 for whatever this process starts next
        os.environ.clear()
        os.environ.update(environment)
    with client, parallel_config(backend="dask", n_jobs=jobs):
        yield


@contextmanager
def _ray(jobs: int) -> Iterator[None]:
    """The cluster that RAY_ADDRESS names, or one made here."""
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
