"""`ptrnet generate`: fresh instances with their answers."""

from typing import Annotated

import typer

from ptrnet.cli import words as w


def register(app: typer.Typer) -> None:
    app.command()(generate)


def generate(
    task: Annotated[str, typer.Argument(metavar="TASK", help="hull or sort.")],
    n: Annotated[str, typer.Option("--n", help="Sizes: 50, 5-50 or 5,10,20-30.")],
    count: Annotated[int, typer.Option("--count", min=1, help="How many examples.")],
    output: Annotated[str, typer.Option("--output", help="The file; its extension is the format.")],
    labeller: Annotated[
        str | None, typer.Option("--labeller", help="The algorithm; by default the task's first.")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", help="Processes; -1 for one a core. The file is the same.")
    ] = 1,
    seed: w.Seed = 0,
) -> None:
    """Draw instances of TASK, answer them by an algorithm, and write both.

    Example: ptrnet generate hull --n 5-50 --count 10000 --output hull.txt
    """
    from ptrnet import tasks
    from ptrnet.cli.progress import shown
    from ptrnet.data import checks, formats
    from ptrnet.data.generate import generate
    from ptrnet.data.sizes import parse_sizes
    from ptrnet.errors import InputError

    kind = tasks.get(task)
    sizes = parse_sizes(n)
    checks.sizes(sizes, kind)
    kind.check_labeller(labeller, sizes[-1])
    formats.check_output(output)
    if jobs < 1 and jobs != -1:
        raise InputError(f"--jobs: expected 1 or more, or -1 for one a core, got {jobs}")
    examples = generate(kind, sizes, count, seed, labeller, jobs)
    formats.write(output, shown(examples, "generating", count), kind)
