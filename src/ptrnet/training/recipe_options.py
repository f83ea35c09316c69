"""The keys of a recipe as options of the command line. No torch here."""

import typing
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from ptrnet import models, tasks
from ptrnet.errors import InputError
from ptrnet.models.settings import ALIASES, every_setting
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import CONSTRAINTS, Unknown
from ptrnet.training.recipe import Recipe


class Option(NamedTuple):
    """One option of `ptrnet train`."""

    type: Any
    default: Any
    help: str


def recipe_options() -> dict[str, Option]:
    """Every option by the name of its key in a recipe."""
    guessed = f"what answers of --data are: {' | '.join(CONSTRAINTS)}"
    return {
        **option_fields(),
        "constraint": Option(str, "guessed", guessed),
        "fields": Option(str, "all", "of elements of --data that are objects, as price,colour"),
        "unknown_category": Option(
            str,
            "refuse",
            f"texts that no example of --data has: {' | '.join(typing.get_args(Unknown))}",
        ),
        **task_settings(),
        **model_settings(),
        **former_settings(),
    }


def option_fields() -> dict[str, Option]:
    """The fields of a recipe, but for the task, which is an argument."""
    hints = typing.get_type_hints(Recipe)
    known = {"model": f": {' | '.join(models.names())}", "labeller": f": {_labellers()}"}
    return {
        f.name: Option(
            hints[f.name],
            f.default,
            f.metadata["help"] + known.get(f.name, _choices(hints[f.name])),
        )
        for f in fields(Recipe)
        if f.default is not MISSING
    }


def _labellers() -> str:
    """The algorithms of each task that has a choice."""
    choices = ((name, tasks.kind(name).labellers) for name in tasks.names())
    return "; ".join(f"{name} {' | '.join(names)}" for name, names in choices if len(names) > 1)


def _choices(hint: Any) -> str:
    """The values of a setting that has a few: after its help."""
    values = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
    return f": {' | '.join(values)}" if values else ""


def task_settings() -> dict[str, Option]:
    """Every setting that some task has."""
    options = {}
    shared = Task.settings()
    recipe_fields = option_fields()
    for task in tasks.names():
        kind = tasks.kind(task)
        for f in fields(kind):
            if f.name in recipe_fields:
                raise InputError(
                    f"task {task}: setting {f.name}: a recipe has a field of that name; rename it"
                )
        hints = typing.get_type_hints(kind)
        for f in fields(kind):
            prefix = "" if f.name in shared else f"task {task}: "
            text = f"{prefix}{f.metadata['help']}{_choices(hints[f.name])}"
            options[f.name] = Option(hints[f.name], f.default, text)
    return options


def model_settings() -> dict[str, Option]:
    """Every setting that some model has and that is no field of the recipe."""
    recipe_fields = option_fields()
    for name in every_setting():
        if name in recipe_fields and name not in ("hidden_size", "n"):  # which the recipe passes on
            raise InputError(f"model setting {name}: a recipe has a field of that name; rename it")
    return {
        name: Option(
            setting.type, setting.default, setting.metadata["help"] + _choices(setting.type)
        )
        for name, setting in every_setting().items()
        if name not in recipe_fields
    }


def former_settings() -> dict[str, Option]:
    """Settings of models by their former names."""
    return {
        former: Option(
            str, "", f"former name of --{current.replace('_', '-')}: {' | '.join(values)}"
        )
        for former, (current, values) in ALIASES.items()
    }
