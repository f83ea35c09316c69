"""The options of the verbs that compute in many processes."""

from typing import Annotated

import typer

Jobs = Annotated[
    int, typer.Option("--jobs", help="Processes; -1 for one a core. The file is the same.")
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend", help="Where they run: local, or a cluster of dask or ray (docs/scale.md)."
    ),
]
