"""`ptrnet generate`: fresh instances with their answers."""

from typing import Annotated

import typer

from ptrnet.cli import bulk
from ptrnet.cli.options import Labeller, Seed, TaskName


def register(app: typer.Typer) -> None:
    app.command()(generate)


def generate(
    task: TaskName,
    n: Annotated[str, typer.Option("--n", help="Sizes: 50, 5-50 or 5,10,20-30.")],
    count: Annotated[int, typer.Option("--count", min=1, help="How many examples.")],
    output: Annotated[str, typer.Option("--output", help="The file; its extension is the format.")],
    labeller: Labeller = None,
    jobs: bulk.Jobs = -1,
    backend: bulk.Backend = "local",
    seed: Seed = 0,
) -> None:
    """Draw instances of TASK, answer them by an algorithm, and write both.

    The file is the same whoever computes it. Where the work is stopped, what was done is kept
    beside the file, and the same command goes on from there.

    Example: ptrnet generate tsp --n 5-20 --count 100000 --labeller exact --output tsp.txt
    """
    from functools import partial

    from ptrnet import tasks
    from ptrnet.data import checks, formats
    from ptrnet.data import generate as fresh
    from ptrnet.data.resumable import has_lines
    from ptrnet.data.sizes import parse_sizes
    from ptrnet.progress import track

    kind = tasks.get(task)
    sizes = parse_sizes(n)
    checks.sizes(sizes, kind)
    kind.check_labeller(labeller, sizes[-1])
    formats.check_output(output, kind)
    bulk.check_jobs(jobs, backend)
    if not has_lines(output):
        examples = fresh.generate(kind, sizes, count, seed, labeller, jobs, backend)
        formats.write(output, track(examples, "generating", count), kind)
        return
    chunks = -(-count // fresh.CHUNK)
    facts = {"command": "generating", "sizes": sizes, "seed": seed}
    bulk.grow(
        output,
        kind,
        {**facts, "labeller": labeller or kind.labellers[0]},
        partial(fresh.fresh, kind, sizes, seed, count, labeller),
        lambda done: range(-(-done // fresh.CHUNK), chunks),
        count,
        jobs if chunks > 1 else 1,
        backend,
    )
