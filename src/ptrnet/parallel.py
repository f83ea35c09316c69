"""A map in many processes, here or on a cluster, through joblib."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config

from ptrnet.errors import InputError, MissingExtraError, PtrnetError, unknown

Item = TypeVar("Item")
Result = TypeVar("Result")

LOCAL = "local"
BACKENDS = (LOCAL, "dask", "ray")
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
    # Round by round, so that items are drawn in this thread: joblib would draw them in one of
    # its own, where an error of theirs is lost. Ray's backend gives results only all at once.
    return_as = "list" if backend == "ray" else "generator"
    with _backend(backend, jobs), Parallel(n_jobs=jobs, return_as=return_as) as parallel:
        while batch := list(islice(rest, _ROUND * parallel._effective_n_jobs())):
            results = iter(parallel(delayed(_call)(function, item) for item in batch))
            try:
                for result in results:
                    if isinstance(result, PtrnetError):
                        raise result
                    yield result
            finally:
                for _ in results:  # joblib complains of results that nobody took
                    pass


def _call(function: Callable[[Item], Result], item: Item) -> Result | PtrnetError:
    """Returns what the user can mend: raised, that of a later item might come first."""
    try:
        return function(item)
    except PtrnetError as error:
        return error


def check_jobs(jobs: int, name: str = "jobs") -> None:
    """Refuses a number of processes other than 1, 2, ... and -1; `name` is the argument's."""
    if not isinstance(jobs, int) or (jobs < 1 and jobs != -1):
        raise InputError(f"{name}: expected 1 or more, or -1 for one a core, got {jobs!r}")


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
    return {LOCAL: _local, "dask": _dask, "ray": _ray}[backend](jobs)


def _local(jobs: int) -> AbstractContextManager[Any]:
    return parallel_config(backend="loky", n_jobs=jobs)


@contextmanager
def _dask(jobs: int) -> Iterator[None]:
    """The scheduler that DASK_SCHEDULER_ADDRESS or Dask's configuration names, or one made here."""
    import dask
    from distributed import Client

    address = dask.config.get("scheduler-address", None)
    workers = None if jobs < 0 else jobs
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
    with client, parallel_config(backend="dask", n_jobs=jobs):
        yield


@contextmanager
def _ray(jobs: int) -> Iterator[None]:
    """The cluster that RAY_ADDRESS names, or one made here."""
    import ray
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
