"""`ptrnet label`: answers for a file's instances, by an algorithm."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.cli import bulk
from ptrnet.cli.options import Labeller, Seed, TaskName

if TYPE_CHECKING:
    from ptrnet.types import Example


def register(app: typer.Typer) -> None:
    app.command()(label)


def label(
    task: TaskName,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Instances; answers are replaced.")],
    output: Annotated[
        str, typer.Option("--output", help="The file; its extension is the format.")
    ] = "-",
    labeller: Labeller = None,
    jobs: bulk.Jobs = -1,
    backend: bulk.Backend = "local",
    seed: Seed = 0,
) -> None:
    """Answer the instances of FILE by an algorithm.

    The answers are in FILE's own format; those to a .tsp file are a .tour, those to .parquet are
    printed as .jsonl. The algorithms draw nothing at random: their answers are the same for every
    seed. Where the work is stopped, what was done is kept beside the output, and the same command
    goes on.

    Example: ptrnet label hull points.csv --labeller monotone-chain --output hull.csv
    """
    from functools import partial

    from ptrnet import tasks
    from ptrnet.data import formats
    from ptrnet.data import generate as fresh
    from ptrnet.data.resumable import has_lines
    from ptrnet.parallel import in_order
    from ptrnet.progress import track

    kind = tasks.get(task)
    kind.check_labeller(labeller, kind.min_elements)
    formats.check_output(output, kind)
    bulk.check_jobs(jobs, backend)
    work = partial(fresh.label, kind, labeller)

    def given() -> Iterator["Example"]:
        return formats.fitting(formats.target(output, file), formats.read(file, kind), kind)

    total = _count(file)
    if total is not None and total <= fresh.CHUNK:
        jobs = 1  # other processes take longer to start
    if file == "-" or not has_lines(output):
        chunks = in_order(work, _chunks(given()), jobs, backend)
        examples = (example for chunk in chunks for example in chunk)
        formats.write(output, track(examples, "labelling"), kind, like=file)
        return
    stat = Path(file).stat()
    facts = {"command": "labelling", "file": str(Path(file).resolve()), "bytes": stat.st_size}
    bulk.grow(
        output,
        kind,
        {**facts, "changed": stat.st_mtime_ns, "labeller": labeller or kind.labellers[0]},
        work,
        lambda done: _chunks(islice(given(), done, None)),
        total,
        jobs,
        backend,
    )


def _count(file: str) -> int | None:
    """How many instances a file has, where that is quick to say."""
    from ptrnet.data import formats
    from ptrnet.data.formats.parts import lines

    if file == "-":
        return None
    formats.check_input(file)
    held = formats.capabilities(formats.of(file))
    if not held.several:
        return 1
    return None if held.binary else lines.count(file)


def _chunks(examples: Iterable["Example"]) -> Iterator[list["Example"]]:
    from ptrnet.data.generate import CHUNK

    rest = iter(examples)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk
