"""Work in many processes, here or on a cluster, through joblib; results keep the work's order."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config

from ptrnet.errors import InputError, MissingExtraError, PtrnetError, unknown

Item = TypeVar("Item")
Result = TypeVar("Result")

LOCAL = "local"
BACKENDS = (LOCAL, "dask", "ray")
_ROUND = 32  # pieces of work for each process that are handed out at a time


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], jobs: int, backend: str = LOCAL
) -> Iterator[Result]:
    """`work` of each item; at most a few items for each process are under way at a time.

    Args:
        work: a function that processes elsewhere can import, or a partial of one.
        items: what it is called with.
        jobs: processes; -1 for one a core. One works in this process, unless on a cluster.
        backend: `local`; `dask` or `ray` send the work to their cluster, or to one that they
            start here where none is named.

    Raises:
        InputError: an unknown backend, or a cluster that is not reached.
        MissingExtraError: the backend's package is not installed.
    """
    if jobs == 1 and backend == LOCAL:
        yield from map(work, items)
        return
    rest = iter(items)
    # Round by round, so that items are made in this thread: joblib would take them in one of its
    # own, where an error of theirs is lost. Ray's backend gives results only all at once.
    how = "list" if backend == "ray" else "generator"
    with _backend(backend, jobs), Parallel(n_jobs=jobs, return_as=how) as parallel:
        while some := list(islice(rest, _ROUND * parallel._effective_n_jobs())):
            found = iter(parallel(delayed(_tried)(work, item) for item in some))
            try:
                for result in found:
                    if isinstance(result, PtrnetError):
                        raise result
                    yield result
            finally:
                for _ in found:  # joblib complains of results that nobody took
                    pass


def _tried(work: Callable[[Item], Result], item: Item) -> Result | PtrnetError:
    """What the user can mend comes back as a result: of the first, whoever was quicker."""
    try:
        return work(item)
    except PtrnetError as error:
        return error


def check_backend(name: str) -> None:
    """Refuses a backend that is unknown, or whose package is not installed."""
    if name not in BACKENDS:
        raise unknown("backend", name, BACKENDS)
    try:
        if name == "dask":
            import distributed  # noqa: F401
        if name == "ray":
            import ray  # noqa: F401
    except ImportError:
        raise MissingExtraError(f"backend {name}", name) from None


def _backend(name: str, jobs: int) -> AbstractContextManager[Any]:
    check_backend(name)
    return {LOCAL: _local, "dask": _dask, "ray": _ray}[name](jobs)


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
