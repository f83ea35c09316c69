"""`ptrnet evaluate`: a model's answers against a file's own."""

import typer

from ptrnet.cli import words as w
from ptrnet.errors import InputError


def register(app: typer.Typer) -> None:
    app.command()(evaluate)


def evaluate(
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
    seed: w.Seed = 0,
    json: w.Json = False,
) -> None:
    """Measure a model's answers to FILE against the answers that FILE gives.

    Every metric carries its count and a 95% interval. TASK may be left out with --model.

    Example: ptrnet evaluate hull test.txt --decoder beam --beam-size 4
    """
    from json import dumps

    from ptrnet.data import formats
    from ptrnet.evaluation import evaluate
    from ptrnet.progress import shown

    task, name = w.task_and_file(words, model, wanted=1)
    chosen = w.decoder_for(decoder, beam_size, samples, temperature, window, inner, seconds, seed)
    solver = w.solver_for(task, model)
    examples = list(formats.read(name, solver.task))
    for example in examples:
        if example.outputs is None:
            raise InputError(f"{example.where}: has no answer to measure against")
    answers = shown(
        solver.answered(examples, chosen, constrained=constrained, augment=augment),
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
        value = "FAIL" if m.fail else "-" if m.value is None else f"{m.value:.4f}"
        interval = "" if m.low is None else f"  95%: {m.low:.4f} to {m.high:.4f}"
        lines.append(f"{metric:<18}{value:>10}{interval}  over {m.count}")
    w.say(dumps(document) if json else "\n".join(lines))
