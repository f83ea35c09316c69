"""`ptrnet train`: train a model, and write it to a folder."""

import contextlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptrnet import plugins
from ptrnet.cli.options import (
    PROBLEMS,
    TASKS,
    add_settings,
    complete_architectures,
    complete_labellers,
    complete_optimizers,
    complete_tasks,
    echo,
    task_names,
)
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.training.own_data import infer_recipe
from ptrnet.training.recipe import RECIPES, Recipe, recipe_options

if TYPE_CHECKING:
    from ptrnet.types import Dataset


def train(
    task_or_recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="TASK|MODEL|RECIPE.toml",
            help=f"TASK is {TASKS}; or a problem: {PROBLEMS}. MODEL is a shipped model.",
            show_default=False,
            autocompletion=complete_tasks,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the model, its recipe, logs and checkpoint.  [runs/TASK-1, ...]"
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a stopped run.")] = False,
    logger: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="wandb or mlflow, in addition to the run's own logs. Repeat it to use both.",
        ),
    ] = None,
    **options: Any,
) -> None:
    """Train a model of a task, from a recipe, or on your own examples. Options override recipes.

    Examples:
        ptrnet train --data mine.jsonl --output my-model
        ptrnet train --data test.csv --set-id order --chosen bought --model conditional-logit
        ptrnet train --data trips.csv --alternatives car,bus --chosen choice
        ptrnet train hull --n 5-100 --output my-hull
        ptrnet train hull-ptr-net --steps 20000
        ptrnet train tsp --data tsp.txt --valid tsp-test.txt --n 5-20 --augment

    With TASK, ptrnet trains by the recipe of the shipped model of that name, on examples that it
    draws and labels, unless --data names a file of examples. --model ptr-net and MODEL hull-ptr-net
    train the papers' network instead.

    With --data alone, the examples determine the kind of the answers, the features and the network.
    Each network keeps a tenth of the examples for validation (a fifth for choices and grades), and
    training ends when the validation loss stops falling. If several sets are of one person or
    household, name its column by --group.
    For choices, --model conditional-logit fits no network, but a table of coefficients with
    standard errors.
    With --set-id, FILE is a long table: each row is an element. With --alternatives, it is a wide
    table: each row is a set, and each alternative has its own columns, such as car_cost.
    ptrnet parses the file once, and stores the result in FILE.packed/ for later runs. Only tables
    (--set-id or --alternatives), and elements that are objects, are parsed in each run.

    The folder of --output gets the model, its recipe, its logs and the last checkpoint. --resume
    continues a stopped run, and gives the same weights as a run that was not stopped. Without
    --output, --resume continues the last run of TASK in runs/.
    """
    options = {key: value for key, value in options.items() if value is not None}
    if task_or_recipe is not None:
        _check_options(task_or_recipe, options)
    if resume:
        output, task_or_recipe = _resumed(task_or_recipe, output, options)
    recipe, summary, data = _recipe(task_or_recipe, options)
    try:
        from ptrnet.model_folder import is_there
        from ptrnet.training.checkpoint import LAST
        from ptrnet.training.loop import is_main_process
        from ptrnet.training.reports import Hooks
        from ptrnet.training.run import train as run_training
        from ptrnet.training.run_folder import last_numbered, next_numbered
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "train") from error
    hooks = Hooks(loggers=tuple(logger or ()))
    if summary and is_main_process():
        print(f"{recipe.data.data}: {summary}", file=sys.stderr)
    with contextlib.ExitStack() as numbered:
        if output is None and (resume or not is_main_process()):
            # The run to resume, or the folder that the main process has just created.
            output = last_numbered(Path("runs"), recipe.task.name)
        elif output is None:
            output = numbered.enter_context(next_numbered(Path("runs"), recipe.task.name))
        try:
            run_training(recipe, output, resume, hooks=hooks, data=data)
        except KeyboardInterrupt:
            if is_main_process():
                if is_there(output):
                    print(f"the best model so far is in {output}", file=sys.stderr)
                named = "".join(f" --plugins {shlex.quote(path)}" for path in plugins.files())
                print(
                    f"resume with: ptrnet train{named} --output {output} --resume", file=sys.stderr
                )
                if not (output / LAST).exists():
                    print(
                        "there is no checkpoint yet, so the training then begins at step 0",
                        file=sys.stderr,
                    )
            raise
    if is_main_process():
        echo(str(output))


def _resumed(
    task_or_recipe: str | None, output: Path | None, options: dict[str, Any]
) -> tuple[Path | None, str | None]:
    """Return the folder of the run to resume, and the path of its recipe instead of TASK or MODEL.

    This recipe has all options of the run, so the user need not repeat them. Return `output` and
    `task_or_recipe` unchanged if the user gave a recipe, or --data without TASK, or neither TASK
    nor --output. Raises InputError if there is no run, or the run is of another task.
    """
    from ptrnet.training.run_folder import RECIPE, last_numbered

    expected = task_or_recipe
    if expected is not None and (RECIPES / f"{expected}.toml").is_file():
        expected = Recipe.read(RECIPES / f"{expected}.toml").task.name
    is_task = expected in task_names()
    if output is None and is_task:
        output = last_numbered(Path("runs"), str(expected))
    if output is None or not (is_task or (expected is None and "data" not in options)):
        return output, task_or_recipe
    if not (output / RECIPE).is_file():
        raise InputError(f"{output}: there is no run to resume")
    task = Recipe.read(output / RECIPE).task.name
    if is_task and task != expected:
        raise InputError(f"{output}: the run is of task {task}, not {expected}")
    return output, str(output / RECIPE)


def _check_options(task_or_recipe: str, options: dict[str, Any]) -> None:
    """Raise InputError if TASK is `custom`, is a file of examples, or does not fit an option.

    --kind and --constraint describe your own examples, so they need --data without TASK.
    """
    from ptrnet import tasks
    from ptrnet.data import formats

    if task_or_recipe == tasks.CUSTOM:
        raise InputError("leave out TASK to train on a file of your own: ptrnet train --data FILE")
    for name in {"kind", "constraint"} & options.keys():
        raise InputError(f"--{name} needs --data FILE, and no TASK")
    if Path(task_or_recipe).suffix[1:] in formats.names():
        raise InputError(
            f"expected TASK or RECIPE.toml, got {task_or_recipe}; did you mean --data "
            f"{task_or_recipe}?"
        )


def _recipe(
    task_or_recipe: str | None, options: dict[str, Any]
) -> tuple[Recipe, str, "Dataset | None"]:
    """Return the recipe that the arguments describe, a summary and the examples.

    If the arguments name a task or a recipe, the summary is empty and the examples are None.
    """
    if task_or_recipe is None and "data" in options:
        return infer_recipe(options["data"], options)
    if task_or_recipe is None:
        raise InputError("expected TASK, RECIPE.toml or --data FILE, or --resume with --output")
    if task_or_recipe.endswith(".toml"):
        return Recipe.read(Path(task_or_recipe), **options), "", None
    return Recipe.named(task_or_recipe, **options), "", None


def prepare(arguments: Sequence[str] = ()) -> None:
    """Add an option to `train` for each setting that the arguments may use.

    Trainings on the user's own examples use no settings of other tasks, so then we do not import
    the tasks.
    """
    names = task_names()
    words = {*names, *(path.stem for path in RECIPES.glob("*.toml")), "-h", "--help"}
    has_data = any(word.partition("=")[0] == "--data" for word in arguments)
    is_own = not any(word in words or word.endswith(".toml") for word in arguments)
    add_settings(
        train,
        recipe_options([] if has_data and is_own else names).values(),
        {
            "model": complete_architectures,
            "labeller": complete_labellers,
            "optimizer": complete_optimizers,
        },
    )
