"""`ptrnet evaluate`: a model's answers against a file's own."""

import typer

from ptrnet.cli.options import (
    Augment,
    BeamSize,
    Constrained,
    DecoderName,
    Inner,
    Json,
    Model,
    Positional,
    Samples,
    Seed,
    Temperature,
    Window,
    decoder_for,
    say,
    solver_for,
    task_and_file,
)
from ptrnet.errors import InputError


def register(app: typer.Typer) -> None:
    app.command()(evaluate)


def evaluate(
    words: Positional = None,
    model: Model = None,
    decoder: DecoderName = "greedy",
    beam_size: BeamSize = None,
    samples: Samples = None,
    temperature: Temperature = None,
    window: Window = None,
    inner: Inner = None,
    augment: Augment = 1,
    constrained: Constrained = True,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure a model's answers to FILE against the answers that FILE gives.

    Every metric carries its count and a 95% interval. TASK may be left out with --model.

    Example: ptrnet evaluate hull test.txt --decoder beam --beam-size 4
    """
    from json import dumps

    from ptrnet.data import formats
    from ptrnet.evaluation import evaluate
    from ptrnet.progress import track

    task, name = task_and_file(words, model, wanted=1)
    chosen = decoder_for(decoder, beam_size, samples, temperature, window, inner, seed)
    solver = solver_for(task, model)
    examples = list(formats.read(name, solver.task))
    for example in examples:
        if example.outputs is None:
            raise InputError(f"{example.source}: has no answer to measure against")
    answers = track(
        solver.solve_examples(examples, chosen, constrained=constrained, augment=augment),
        "answering",
        len(examples),
    )
    found = evaluate(solver, examples, answers)
    document = {
        "task": solver.task.name,
        "model": model or solver.task.name,
        "decoder": chosen.name,
        "instances": len(examples),
        "metrics": {metric: measure.table() for metric, measure in found.items()},
    }
    lines = [f"{len(examples)} instances, model {document['model']}, {chosen.name} decoding"]
    for metric, m in found.items():
        value, interval = m.value_and_interval(4)
        interval = f"  95%: {interval}" if interval else ""
        lines.append(f"{metric:<18}{value:>10}{interval}  over {m.count}")
    say(dumps(document) if json else "\n".join(lines))
