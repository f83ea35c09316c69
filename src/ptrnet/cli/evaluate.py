"""`ptrnet evaluate`: a model's answers against a file's own."""

from json import dumps

import typer

from ptrnet.cli.decoding import DecodingOptions
from ptrnet.cli.options import (
    Arguments,
    Json,
    Model,
    Seed,
    expand_option_groups,
    load_solver,
    say,
    task_and_file,
)
from ptrnet.errors import InputError


def register(app: typer.Typer) -> None:
    app.command()(expand_option_groups(evaluate))


def evaluate(
    *,
    arguments: Arguments = None,
    model: Model = None,
    decoding: DecodingOptions,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure a model's answers to FILE against the answers that FILE gives.

    Every metric carries its count and a 95% interval. TASK may be left out with --model.

    Example: ptrnet evaluate hull test.txt --decoder beam --beam-size 4
    """
    from ptrnet.data import formats
    from ptrnet.evaluation import evaluate
    from ptrnet.progress import track

    task, path = task_and_file(arguments, model)
    decoder = decoding.build(seed)
    solver = load_solver(task, model)
    examples = list(formats.read(path, solver.task))
    for example in examples:
        if example.outputs is None:
            raise InputError(f"{example.source}: has no answer to measure against")
    answers = solver.solve_examples(
        examples, decoder, constrained=decoding.constrained, augment=decoding.augment
    )
    measures = evaluate(solver, examples, track(answers, "answering", len(examples)))
    document = {
        "task": solver.task.name,
        "model": model or solver.task.name,
        "decoder": decoder.name,
        "instances": len(examples),
        "metrics": {metric: measure.table() for metric, measure in measures.items()},
    }
    lines = [f"{len(examples)} instances, model {document['model']}, {decoder.name} decoding"]
    for metric, m in measures.items():
        value, interval = m.value_and_interval(4)
        interval = f"  95%: {interval}" if interval else ""
        lines.append(f"{metric:<18}{value:>10}{interval}  over {m.count}")
    say(dumps(document) if json else "\n".join(lines))
