"""`ptrnet train`: from examples to a model's folder."""

import inspect
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ptrnet.cli.options import say
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.models.settings import ALIASES
from ptrnet.tasks.custom import CONSTRAINTS
from ptrnet.training.recipe import model_settings, option_fields, task_settings


def register(app: typer.Typer) -> None:
    app.command()(train)


def train(
    what: str | None = None, output: Path | None = None, resume: bool = False, **options: Any
) -> None:
    """Train a model of TASK, or as RECIPE.toml says, or on a file of your own; options overrule.

    Examples are fresh, or those of --data FILE, each once in an epoch. FILE is read once and kept
    ready for later runs in FILE.packed/. With --data alone the examples say what is learned: what
    answers are (or --constraint does), how many features elements have and how those are scaled;
    a tenth of them is kept to validate on, and training ends when that gets no better.

    Leaves in the folder of --output: the model, its recipe, its logs and the last checkpoint.
    A run that was stopped goes on with --resume, to the weights it would have reached.

    Example: ptrnet train hull --n 5-50 --steps 60000 --output my-hull

    Example: ptrnet train tsp --data tsp.txt --valid tsp-test.txt --n 5-20 --augment

    Example: ptrnet train --data mine.jsonl --output my-model
    """
    from ptrnet.training.recipe import Recipe

    given = {key: value for key, value in options.items() if value is not None}
    _check_words(what, given)
    summary = ""
    if resume and what is None and output is not None:
        recipe = Recipe.read(output / "recipe.toml", **given)
    elif what is None and "data" in given:
        from ptrnet.training.infer_recipe import recipe_for

        recipe, summary = recipe_for(given["data"], given)
    elif what is None:
        raise InputError("expected TASK, RECIPE.toml or --data FILE, or --resume with --output")
    elif what.endswith(".toml"):
        recipe = Recipe.read(Path(what), **given)
    else:
        recipe = Recipe.from_table({**given, "task": what})
    if output is None:
        output = Path("runs") / recipe.task
    try:
        from ptrnet.training.run import leads, train
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "train") from error
    if summary and leads():
        print(f"{recipe.data}: {summary}", file=sys.stderr)
    try:
        train(recipe, output, resume)
    except KeyboardInterrupt:
        if leads():
            print(f"go on with: ptrnet train --output {output} --resume", file=sys.stderr)
        raise
    if leads():
        say(str(output))


def _check_words(what: str | None, given: dict[str, Any]) -> None:
    """Refuses what is meant for a training on a file of one's own, but says something else."""
    from ptrnet import tasks
    from ptrnet.data import formats

    if what is not None and tasks.current_name(what) == tasks.CUSTOM:
        raise InputError("leave out TASK to train on a file of your own: ptrnet train --data FILE")
    if what is not None and "constraint" in given:
        raise InputError("--constraint goes with --data FILE and no TASK")
    if what is not None and Path(what).suffix[1:] in formats.names():
        raise InputError(f"expected TASK or RECIPE.toml, got {what}; did you mean --data {what}?")


def _signature() -> inspect.Signature:
    """The signature that the options are read from: every field of a recipe, by its name."""
    kind = inspect.Parameter.KEYWORD_ONLY
    settings = {**task_settings(), **model_settings()}
    given = [
        inspect.Parameter(
            "what",
            kind,
            default=None,
            annotation=Annotated[str | None, typer.Argument(metavar="TASK|RECIPE.toml")],
        ),
        inspect.Parameter(
            "output",
            kind,
            default=None,
            annotation=Annotated[Path | None, typer.Option(help="The folder; runs/TASK if none.")],
        ),
        inspect.Parameter(
            "resume",
            kind,
            default=False,
            annotation=Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")],
        ),
    ]
    constraint = {
        "constraint": (str, "guessed", f"what answers of --data are: {' | '.join(CONSTRAINTS)}")
    }
    former = {
        name: (str, "", f"former name of --{current.replace('_', '-')}: {' | '.join(values)}")
        for name, (current, values) in ALIASES.items()
    }
    described = {**option_fields(), **constraint, **settings, **former}
    for name, (hint, default, text) in described.items():
        kind_of = hint if hint in (int, float, bool) else str
        help_text = f"{text} [{default}]" if default != "" else text
        given.append(
            inspect.Parameter(
                name,
                kind,
                default=None,
                annotation=Annotated[kind_of | None, typer.Option(help=help_text)],
            )
        )
    return inspect.Signature(given)


train.__signature__ = _signature()  # type: ignore[attr-defined]
