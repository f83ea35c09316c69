"""`ptrnet solve`: a file of instances in, their answers out."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptrnet.cli import words as w
from ptrnet.errors import InputError

if TYPE_CHECKING:
    from ptrnet.solver import Solver
    from ptrnet.tasks.base import Task
    from ptrnet.types import Example, Indices


def register(app: typer.Typer) -> None:
    app.command()(solve)


def solve(
    words: w.Words = None,
    model: w.Model = None,
    decoder: w.DecoderName = "greedy",
    beam_size: w.BeamSize = None,
    samples: w.Samples = None,
    temperature: w.Temperature = None,
    window: w.Window = None,
    inner: w.Inner = None,
    seconds: w.Seconds = None,
    augment: w.Augment = 1,
    constrained: w.Constrained = True,
    output: Annotated[
        str, typer.Option("--output", help="Where the answers go; its extension is the format.")
    ] = "-",
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw one answer: FILE.png or FILE.svg.")
    ] = None,
    attention: Annotated[
        Path | None,
        typer.Option("--attention", help="Draw where the model looked: FILE.png or FILE.svg."),
    ] = None,
    index: Annotated[
        int, typer.Option("--index", min=0, help="The instance to draw, from 0 on.")
    ] = 0,
    random: Annotated[
        int | None, typer.Option("--random", min=1, help="Draw an instance of N instead of a file.")
    ] = None,
    seed: w.Seed = 0,
    json: w.Json = False,
) -> None:
    """Answer every instance of FILE with a trained model.

    The answers are written in the file's own format: 1-based behind `output` in .txt, 0-based in
    .jsonl, the rows in the answer's order in .csv. Those to a .tsp file are a .tour, those to
    .parquet are printed as .jsonl. TASK may be left out with --model.

    Example: ptrnet solve hull examples/capitals.csv --plot hull.png
    """
    from ptrnet.data import formats
    from ptrnet.progress import shown

    task, name = w.task_and_file(words, model, wanted=0 if random else 1)
    formats.check_output(output)
    for picture in filter(None, (plot, attention)):
        from ptrnet.plots.figure import check_path

        check_path(picture)
    chosen = w.decoder_for(decoder, beam_size, samples, temperature, window, inner, seconds, seed)
    solver = w.solver_for(task, model)
    formats.check_output(output, solver.task)
    format_ = formats.target(output, name or "-")
    instances = _instances(solver, name, random, seed)
    examples = list(formats.fitting(format_, instances, solver.task))
    if (plot or attention) and index >= len(examples):
        raise InputError(f"--index: expected 0 to {len(examples) - 1}, got {index}")
    answers = solver.answered(examples, chosen, constrained=constrained, augment=augment)
    answered = list(shown(answers, "solving", len(examples)))
    if attention is not None:
        from ptrnet.plots.attention import draw_attention

        chosen_one = answered[index]
        probabilities, tokens = solver.attention(chosen_one)
        draw_attention(attention, solver.task, chosen_one.inputs, probabilities, tokens)
    with _picture(plot) as ax:  # drawn first, and there only if the answers are
        if ax is not None:
            _draw(ax, solver, answered[index], examples[index].outputs)
        if output != "-":
            formats.write(output, answered, solver.task)
    if json:
        w.say(_json(solver, model, chosen.name, answered))
    elif output == "-":
        formats.write(output, answered, solver.task, like=name or "-")


def _instances(solver: "Solver", name: str, random: int | None, seed: int) -> Iterable["Example"]:
    import numpy as np

    from ptrnet.data import checks, formats
    from ptrnet.data.sizes import parse_sizes
    from ptrnet.types import Example

    if random is None:
        return formats.read(name, solver.task)
    (n,) = parse_sizes(str(random))
    checks.sizes([n], solver.task)
    drawn = solver.task.sample(np.random.default_rng(seed), 1, n)[0]
    return [Example(drawn, where="the random instance")]


def _picture(path: Path | None) -> AbstractContextManager[Any]:
    if path is None:
        return nullcontext()
    from ptrnet.plots.figure import axes

    return axes(path)


def _draw(ax: Any, solver: "Solver", answered: "Example", given: "Indices | None") -> None:
    """The picture of an answer; `given` is that of the instance's file."""
    from ptrnet.plots.answer import draw_answer
    from ptrnet.types import Table

    task, inputs, outputs = solver.task, answered.inputs, answered.outputs
    assert outputs is not None
    truth, true = (_truth(task, answered) if task.labellers else given), None
    if truth is not None and not task.is_right(answered._replace(outputs=truth), outputs):
        true = task.draw(inputs, truth)
    table = answered.table or Table(None, [], [])
    names = [
        next((cell for k, cell in enumerate(row) if k not in table.numeric), "")
        for row in table.rows
    ]
    kind = f"{task.name} of " if task.labellers else ""
    title = f"{kind}{len(inputs)} elements, answered by a pointer network"
    title += "".join(f", {name} {value:,.6g}" for name, value in task.facts(answered).items())
    draw_answer(ax, task.draw(inputs, outputs), true, names, title)


def _truth(task: "Task", answered: "Example") -> "Indices | None":
    """The right answer, where the task's first labeller takes so many elements and finds one."""
    try:
        task.check_labeller(None, len(answered.inputs))
    except InputError:
        return None
    (truth,) = task.rows(task.label(answered.inputs[None], None, answered.distance))
    return truth if len(truth) else None


def _json(solver: "Solver", model: str | None, decoder: str, answered: list["Example"]) -> str:
    from json import dumps

    document = {
        "task": solver.task.name,
        "model": model or solver.task.name,
        "decoder": decoder,
        "answers": [
            {"outputs": e.outputs.tolist(), "log_likelihood": e.log_prob, **solver.task.facts(e)}
            for e in answered
            if e.outputs is not None
        ],
    }
    return dumps(document)
