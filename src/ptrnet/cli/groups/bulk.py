"""The options of the verbs that compute in many processes."""

from typing import Annotated

import typer


def _check_jobs(jobs: int) -> int:
    from ptrnet.parallel import check_jobs

    check_jobs(jobs, "--jobs")
    return jobs


Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        callback=_check_jobs,
        help="Processes; -1 for one a core. The file is the same.",
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend", help="Where they run: local, or a cluster of dask or ray (docs/scale.md)."
    ),
]
