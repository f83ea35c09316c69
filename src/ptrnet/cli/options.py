"""Options, groups of options and the arguments `[TASK] FILE`, which several commands share."""

import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer

from ptrnet.errors import InputError
from ptrnet.settings import ANY_TASK, COSTS, NETWORKS, OWN_EXAMPLES, Option, Settings, options_of

if TYPE_CHECKING:
    from ptrnet.solver import Solver

TASKS = "reading-order, hull, delaunay, tsp or sort"
PROBLEMS = "cvrp, knapsack, orienteering, job-shop, or a file such as my_problem.py"


def _completion(package: str) -> Callable[[str], list[str]]:
    """Return a function that completes the names that a package lists, such as labellers.

    Names from plug-ins are included.
    """

    def complete(incomplete: str) -> list[str]:
        names = import_module(f"ptrnet.{package}").names()
        return [name for name in names if name.startswith(incomplete)]

    return complete


def task_names() -> list[str]:
    """Return the names that TASK may be: those of tasks and plug-ins, then built-in problems."""
    from ptrnet import tasks

    return [*tasks.names(), *tasks.problem_names()]


def complete_tasks(incomplete: str) -> list[str]:
    """Complete the name of a task or a problem."""
    return [name for name in task_names() if name.startswith(incomplete)]


complete_labellers = _completion("labellers")
complete_models = _completion("weights")  # the shipped models
complete_architectures = _completion("models")
complete_optimizers = _completion("training.optimizers")

Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TASK] FILE",
        show_default=False,
        help=f"TASK is {TASKS}; or a problem: {PROBLEMS}.",
        autocompletion=complete_tasks,
    ),
]
TaskName = Annotated[
    str,
    typer.Argument(
        metavar="TASK", help=f"{TASKS}; or a problem: {PROBLEMS}.", autocompletion=complete_tasks
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Stop at an answer that is not proved, if the labeller promises a proof. Without this "
        'option, the best answer found is kept, with "proved": false in .jsonl and .parquet.',
    ),
]
Labeller = Annotated[
    str | None,
    typer.Option(
        autocompletion=complete_labellers,
        help="The algorithm, by default the task's first. hull: monotone-chain; delaunay: qhull; "
        "tsp: exact, held-karp, local-search; sort: argsort; and those of plug-ins.",
    ),
]
# The panel of an option has its owners (`Option.owners`), separated by commas.
Start = Annotated[
    int | None,
    typer.Option(
        help="The first city, a 0-based index, or the id in a .tsp file.", rich_help_panel="tsp"
    ),
]
End = Annotated[
    int | None, typer.Option(help="The last city, in the same way.", rich_help_panel="tsp")
]
Open = Annotated[
    bool,
    typer.Option(
        "--open", help="A path without the way back from the last city.", rich_help_panel="tsp"
    ),
]
Direction = Annotated[
    str | None,
    typer.Option(
        help="How people read a line: ltr, rtl or vertical.  [ltr]", rich_help_panel="reading-order"
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        autocompletion=complete_models,
        help="A shipped model, a model's folder or a hub id.  [the task's shipped model]",
    ),
]
Points = Annotated[
    str | None,
    typer.Option(
        help="With --random: uniform, mixed, gaussian, clustered, curves, stretched, grid or "
        "duplicates.  [as the model was trained]"
    ),
]
Plot = Annotated[Path | None, typer.Option(help="Draw one answer: FILE.png or FILE.svg.")]
Index = Annotated[
    int, typer.Option(min=0, help="With --plot: the instance to draw; 0 is the first.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]
# Scripts may pass --seed to every command. Commands that draw no random numbers hide the option.
UnusedSeed = Annotated[int, typer.Option(min=0, hidden=True)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Jobs = Annotated[
    int,
    typer.Option(help="Number of processes; -1 means one per core. It does not change the output."),
]
Backend = Annotated[
    str, typer.Option(help="Where processes run: local, or a dask or ray cluster (docs/scale.md).")
]


_FLAGS = {"constrained": "--constrained/--free"}  # flags that differ from the setting's name


def flag_of(name: str) -> str:
    """Return the flag of a setting, for error messages on the command line."""
    return f"--{name.replace('_', '-')}"


def parameter_of(
    setting: Option, completion: Callable[[str], list[str]] | None = None
) -> inspect.Parameter:
    """Return a setting as a parameter from which typer makes an option.

    typer only parses numbers. The setting checks everything else, with clearer messages. By
    default, a shell offers the setting's choices as completions.
    """

    def complete_choices(incomplete: str) -> list[str]:
        return [choice for choice in setting.choices if choice.startswith(incomplete)]

    kind: Any = setting.type if setting.type in (int, float, bool) else str
    if get_origin(setting.type) is tuple:  # an option that can be repeated
        kind = list[get_args(setting.type)[0]]  # type: ignore[misc]
    flags = [_FLAGS[setting.name]] if setting.name in _FLAGS else []
    completion = completion or (complete_choices if setting.choices else None)
    option = typer.Option(
        *flags,
        help=setting.help,
        autocompletion=completion,
        rich_help_panel=",".join(setting.owners) or None,
    )
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=setting.default,
        annotation=Annotated[kind | None if setting.default is None else kind, option],
    )


def add_settings(
    command: Callable[..., None],
    settings: Iterable[Option],
    completions: Mapping[str, Callable[[str], list[str]]],
) -> None:
    """Replace the last parameter of a command, `**options`, by an option for each setting.

    typer makes options from the signature of the command. An option that the user leaves out is
    None. The command ignores such options, so that the setting's own default applies. The help
    shows that default in brackets.

    Args:
        command: the command. Its parameters before `**options` have annotations for typer.
        completions: functions that return the words that a shell offers. The keys are the names of
            settings.
    """
    vars(command).pop("__signature__", None)  # of an earlier call
    *named, _ = inspect.signature(command).parameters.values()
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in named]
    for setting in settings:
        text = f"{setting.help} [{setting.default}]" if setting.default != "" else setting.help
        optional = replace(setting, default=None, help=text)
        parameters.append(parameter_of(optional, completions.get(setting.name)))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]


def expand_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command as typer needs it: with one parameter for each option.

    A parameter whose type is a class of settings (`ptrnet.settings`) is a group of options. typer
    sees one option for each setting. The command gets one object with all settings of the group.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Settings]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        group = parameter.annotation
        if isinstance(group, type) and issubclass(group, Settings):
            groups[name] = group
            parameters += map(parameter_of, options_of(group).values())
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def expanded(**options: Any) -> None:
        objects = {}
        for name, group in groups.items():
            values = {setting: options.pop(setting) for setting in options_of(group)}
            try:
                objects[name] = group(**values)
            except InputError as error:
                name, _, complaint = str(error).partition(":")
                flag = f"{flag_of(name)}:{complaint}"
                raise InputError(flag if name in values else str(error)) from None
        command(**objects, **options)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return expanded


def owners_named(command: str, given: Mapping[str, Any]) -> dict[str, set[str] | None]:
    """Return the owners of settings (`Option.owners`) that the arguments of a command name.

    Each owner has the names of its options that the help shows; None means all. The arguments and
    options that the user gave need not be valid. If they name no task, the owners are those of your
    own examples.
    """
    words = (given.get(name) for name in ("task_or_recipe", "arguments", "task"))
    firsts = (word[0] if isinstance(word, tuple) and word else word for word in words)
    word = next((word for word in firsts if isinstance(word, str)), None)
    if command in ("train", "tune"):
        return _owners_of_training(word, given)
    if word is None and "model" not in given:  # import no tasks and no plug-ins
        return {OWN_EXAMPLES: None}
    from ptrnet.training.recipe import RECIPES

    names = task_names()
    if word not in names and (path := RECIPES / f"{given.get('model')}.toml").is_file():
        word = tomllib.loads(path.read_text(encoding="utf-8"))["task"]  # of the shipped model
    return {ANY_TASK: None, word: None} if word in names else {OWN_EXAMPLES: None}


def _owners_of_training(word: str | None, given: Mapping[str, Any]) -> dict[str, set[str] | None]:
    """Return the owners for `train` and `tune`. `word` is TASK, MODEL or RECIPE."""
    from ptrnet import models
    from ptrnet.training.own_data import SEQUENCES, SETS
    from ptrnet.training.recipe import Recipe

    owners: dict[str, set[str] | None] = {OWN_EXAMPLES: None}
    model = given.get("model")
    networks = [model] if model else [SETS, SEQUENCES] if given.get("data") else []
    with suppress(InputError):
        if word:
            changes = {"model": model} if model else {}
            is_file = word.endswith(".toml")
            recipe = Recipe.read(Path(word)) if is_file else Recipe.named(word, **changes)
            owners = {ANY_TASK: None, recipe.task.name: None}
            owners |= {COSTS: None} if recipe.task.facts.has_costs else {}
            networks = [recipe.model]
    with suppress(InputError):  # the name of the model is unknown
        if networks:
            owners[NETWORKS] = {name for each in networks for name in models.setting_names(each)}
    return owners


def task_and_file(arguments: list[str] | None, model: str | None) -> tuple[str | None, str]:
    """Return TASK and FILE. TASK is None if the user left it out and named a model instead.

    Raises:
        InputError: there is no FILE, or nothing tells the task, or the task is unknown.
    """
    match arguments or []:
        case [path] if model is not None:
            return None, path
        case [_, *_]:
            return known_task_and_file(arguments, ", or FILE with --model")
    raise _unexpected(arguments, "TASK FILE, or FILE with --model")


def known_task_and_file(arguments: list[str] | None, otherwise: str = "") -> tuple[str, str]:
    """Return TASK and FILE. TASK may be left out if the files of a format are of one task.

    Args:
        otherwise: what else the command takes, for the error message.

    Raises:
        InputError: the arguments are neither TASK FILE nor such a FILE, or the task is unknown.
    """
    from ptrnet.data import formats

    advice = ""
    match arguments or []:
        case [task, path]:
            return _known(task), path
        case [path] if Path(path).suffix[1:].lower() in formats.names():
            if known := formats.format_of(path).capabilities.task:
                return known, path
            advice = f"; TASK is one of {', '.join(task_names())}"
        case [_, _, _, *_]:
            advice = "; FILE may be a folder of documents of pages"
    raise _unexpected(arguments, f"TASK FILE{otherwise}", advice)


def task_alone(arguments: list[str] | None, model: str | None) -> str | None:
    """Return TASK of a command without FILE, or None if the user gave only a model.

    Raises:
        InputError: there is neither TASK nor a model, or the task is unknown.
    """
    match arguments or []:
        case [task]:
            return _known(task)
        case [] if model is not None:
            return None
    raise _unexpected(arguments, "TASK, or --model")


def _known(task: str) -> str:
    from ptrnet import tasks

    tasks.kind(task)
    return task


def _unexpected(arguments: list[str] | None, expected: str, advice: str = "") -> InputError:
    got = " ".join(arguments or []) or "nothing"
    return InputError(f"expected {expected}; got: {got}{advice}")


def load_solver(
    task: str | None, model: str | None, settings: Mapping[str, Any] = MappingProxyType({})
) -> "Solver":
    """Return the model that `--model` names, or the model that is shipped for the task.

    Args:
        task: the name of the task; None: any.
        model: the value of `--model`.
        settings: settings of the task that the user gives, by name; None: not given.

    Raises:
        InputError: the model does not exist, or is for another task. Or the task lacks a setting.
    """
    from ptrnet import tasks, weights
    from ptrnet.data.checks import labeller_advice

    if model is None and task not in weights.names():
        raise InputError(
            f"no model for {task} is shipped; train one with ptrnet train, and name its folder "
            f"with --model{labeller_advice(tasks.get(str(task)))}"
        )
    given = {name: value for name, value in settings.items() if value is not None}
    solver = weights.load(model or str(task), **given)
    if task not in (None, solver.task.name):
        raise InputError(f"model {model} is for task {solver.task.name}, not for {task}")
    return solver


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose columns are aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([c.ljust(w) for c, w in zip(row, widths, strict=True)] for row in rows)
    return ["  ".join(cells).rstrip() for cells in padded]


def echo(text: str) -> None:
    """Print a text and a newline. Raises InputError if standard output cannot be written."""
    from ptrnet.files import to_standard_output

    to_standard_output([text, "\n"])
