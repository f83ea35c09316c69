"""The recipe of a training: the task, the network, and all other settings.

`Recipe` holds objects: the task, the sizes, the settings of the network. A recipe's file is a flat
table (`Recipe.from_table`): it has one key for each setting of the training, the task and the
network. `ptrnet train` has an option for each of these keys (`recipe_options`).
`ptrnet.training.own_data` makes the recipe for a user's file of examples.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from ptrnet import labellers, models, tasks
from ptrnet.data import checks
from ptrnet.data.tables import NO_COLUMNS, TrainingColumns
from ptrnet.errors import InputError, unknown
from ptrnet.models.settings import ModelSettings, every_setting
from ptrnet.problems import Problem
from ptrnet.settings import (
    ANY_TASK,
    COSTS,
    NETWORKS,
    OWN_EXAMPLES,
    Option,
    Settings,
    options_of,
    setting,
    to_mapping,
    to_toml,
)
from ptrnet.sizes import Sizes
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import CONSTRAINTS, Custom
from ptrnet.training import optimizers

RECIPES = Path(str(files("ptrnet") / "recipes"))  # NAME.toml of each shipped model
LARGEST_BATCH = 2**24  # elements, padding included
# Settings of a shipped model's recipe that suit the machine on which we trained it.
OF_MACHINE = ("devices", "precision")
# Names of settings in other libraries, with the key that an error message suggests instead.
_STEPS = "'steps', the updates of the weights (an epoch has as many as there are batches)"
ELSEWHERE = {
    "lr": "'learning_rate'",
    "eta": "'learning_rate'",
    **dict.fromkeys(("epochs", "n_epochs", "num_epochs", "max_epochs"), _STEPS),
    **dict.fromkeys(("iterations", "max_iter", "max_steps", "n_steps", "num_steps"), "'steps'"),
    **dict.fromkeys(("bs", "batch", "batchsize"), "'batch_size'"),
    **dict.fromkeys(("units", "hidden", "hidden_dim", "dim", "d_model"), "'hidden_size'"),
    **dict.fromkeys(("random_state", "random_seed"), "'seed'"),
    **dict.fromkeys(("sample_weight", "sample_weights"), "'weight'"),
    **dict.fromkeys(("early_stopping", "early_stopping_rounds"), "'patience'"),
    **dict.fromkeys(("validation_split", "validation_fraction"), "'valid_share'"),
    **dict.fromkeys(("grad_clip", "max_norm", "gradient_clip_val"), "'clip'"),
    **dict.fromkeys(("optim", "solver"), "'optimizer'"),
    **dict.fromkeys(("wd", "decay"), "'weight_decay'"),
    **dict.fromkeys(("scheduler", "lr_schedule"), "'schedule'"),
    **dict.fromkeys(("warmup_steps", "warmup_ratio"), "'warmup', a share of the steps"),
    **dict.fromkeys(("dtype", "amp"), "'precision'"),
    **dict.fromkeys(("gpus", "num_gpus", "n_jobs"), "'devices'"),
    "accelerator": "'device'",
    **dict.fromkeys(("architecture", "arch"), "'model'"),
}


@dataclass(frozen=True, kw_only=True)
class Recipe(Settings):
    """The settings of a training. `from_table` makes a recipe from texts and numbers.

    Args:
        task: the task to learn.
        network: the settings of the model.
        columns: if the file of examples is a long table, the names of the columns that hold the
            ids of sets and the answers.
    """

    task: Task
    network: ModelSettings
    columns: TrainingColumns = NO_COLUMNS
    model: str = setting("ptr-net", "architecture of the network")
    labeller: str = setting(
        "",
        "algorithm that answers fresh examples; without it, the first one of the task",
        owner=ANY_TASK,
    )
    data: str = setting("", "file of examples to train on; without it, ptrnet draws fresh examples")
    examples: int = setting(
        0,
        "number of drawn examples, which each epoch uses once; 0: no example is used twice",
        ge=0,
        owner=ANY_TASK,
    )
    augment: bool = setting(
        False,
        "with data: shuffle the elements and, if the task allows it, rotate or mirror points, or "
        "read instances backwards",
    )
    n: Sizes = setting(
        Sizes("5-50"), "sizes of the instances, such as 50, 5-50 or 5,10,20-30", owner=ANY_TASK
    )
    steps: int = setting(
        60_000,
        "updates of the weights; for your own examples, the default follows from their number",
        ge=1,
    )
    batch_size: int = setting(128, "examples in an update", ge=1)
    cuts: int = setting(
        0,
        "learn only the tokens after a random cut of the answers, from this many copies of each "
        "tour, which begin at random cities; 0: learn whole answers",
        ge=0,
        owner=ANY_TASK,
    )
    learning: Literal["answers", "self-labelling", "reinforce"] = setting(
        "answers",
        "what to learn from: known answers; or, if only costs are known, the cheapest of the "
        "model's own samples (self-labelling), or all samples (reinforce)",
        owner=COSTS,
    )
    loss: Literal["tokens", "gains"] = setting(
        "tokens",
        "loss of known answers. tokens: cross-entropy of every token; gains: cross-entropy of the "
        "first token only, whose right probabilities are in proportion to 2^grade - 1",
        owner=OWN_EXAMPLES,
    )
    samples: int = setting(
        16,
        "learning from costs: number of answers to sample for each instance",
        ge=2,
        owner=COSTS,
    )
    baseline: Literal["mean", "greedy"] = setting(
        "mean",
        "reinforce: compare a sample's cost with the mean of the other samples, or with the greedy "
        "answer",
        owner=COSTS,
    )
    weights: str = setting(
        "",
        "start with the weights of this model: a shipped one, an id on the hub, or the folder of a "
        "model or of a stopped run",
    )
    optimizer: str = setting(
        "adamw",
        "optimizer; muon: Muon for the weights of linear layers, AdamW for all others; sgd as in "
        "Vinyals et al.",
    )
    learning_rate: float = setting(
        2e-3, "peak of the learning rate (1.0 for sgd in Vinyals et al.)", gt=0
    )
    schedule: Literal["one-cycle", "constant", "trapezoid"] = setting(
        "one-cycle",
        "learning rate after a linear warm-up. one-cycle: cosine decay to zero; trapezoid: "
        "constant, then linear decay to zero in the last fifth of a cycle's steps",
    )
    cycles: int = setting(1, "how often the schedule runs, each time in steps / cycles steps", ge=1)
    warmup: float = setting(
        0.05, "share of a cycle's steps in which the learning rate rises", ge=0, lt=1
    )
    beta1: float = setting(0.9, "adamw: decay of the mean gradient", ge=0, lt=1)
    beta2: float = setting(0.98, "adamw: decay of the mean squared gradient", ge=0, lt=1)
    weight_decay: float = setting(0.01, "adamw: decoupled weight decay", ge=0, lt=1)
    clip: float = setting(2.0, "maximum L2 norm of the gradient", gt=0)
    precision: Literal["auto", "bfloat16", "tf32", "float32"] = setting(
        "auto",
        "type of large matrix products. auto: bfloat16 if the hardware has it, but on a GPU only "
        "for ptr-net; tf32: only on a GPU",
    )
    device: Literal["auto", "cpu", "cuda"] = setting("auto", "device to train on")
    devices: int = setting(
        1, "processes on each machine that share a batch; with cuda, each has a GPU", ge=1
    )
    nodes: int = setting(1, "machines that share each batch", ge=1)
    seed: int = setting(1, "seed of the initial weights and of the examples", ge=0, lt=2**63)
    valid_every: int = setting(
        2000, "steps between validations; for your own examples, a 20th of the steps", ge=1
    )
    valid: str = setting(
        "", "file of examples for validation; by default fresh ones, or those of valid_share"
    )
    valid_share: float = setting(
        0.0,
        "with data: share of the examples that each network of an ensemble keeps for validation; "
        "for your own examples, 0.1",
        ge=0,
        lt=1,
    )
    valid_batches: int = setting(16, "batches of fresh or kept examples in a validation", ge=0)
    patience: int = setting(
        0,
        "stop after this many validations without a smaller loss, and keep the weights of the "
        "latest one whose loss is within a standard error of the smallest; 0: train all steps and "
        "keep the last weights; for your own examples, 10",
        ge=0,
    )
    checkpoint_every: int = setting(
        1000, "steps between checkpoints; a better model has one, too", ge=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_combination(self)
        (_check_answers if self.learning == "answers" else _check_costs)(self)

    @classmethod
    def from_table(cls, table: Mapping[str, Any] = {}, /, **changes: Any) -> Self:
        """Return the recipe of a flat table. `changes` replace some of the values.

        The keys are `task` (a name), and the settings of the recipe, the task, the model and the
        columns.

        Raises:
            InputError: a key is unknown (the message suggests the nearest key), or a value is bad.
        """
        table = {**table, **changes}
        if "task" not in table:
            raise InputError('recipe: the key "task" is missing')
        name = str(table["task"])
        kind = tasks.kind(name)
        table = {**tasks.recipe_of(name), **table}
        model = str(table.get("model", cls.model))
        if (model == models.STATES) != issubclass(kind, Problem):
            if issubclass(kind, Problem):
                raise InputError(f"recipe: problem {name} needs model {models.STATES}, got {model}")
            raise InputError(f"recipe: model {model} is only for problems, and {name} is a task")
        own, of_task = options_of(cls), options_of(kind)
        of_columns = options_of(TrainingColumns)
        of_model = [key for key in models.setting_names(model) if key not in own]
        for key in table:
            if key == "task" or any(key in part for part in (own, of_columns, of_task, of_model)):
                continue
            if key in every_setting():
                raise unknown(f"setting of model {model}", key, of_model)
            if key in ELSEWHERE:
                raise InputError(f"unknown recipe key {key!r}; did you mean {ELSEWHERE[key]}?")
            raise unknown("recipe key", key, ["task", *own, *of_task, *of_model])
        task = tasks.get(name, **{key: table[key] for key in of_task if key in table})
        values = {key: own[key].check(table[key]) for key in own if key in table}
        shared = _shared_settings(model, task, values.get("n", cls.n))
        settings = {**shared, **{key: table[key] for key in of_model if key in table}}
        columns = TrainingColumns(**{key: table[key] for key in of_columns if key in table})
        network = models.settings_of(model, **settings)
        return cls(task=task, network=network, columns=columns, **values)

    @classmethod
    def named(cls, name: str, /, **changes: Any) -> Self:
        """Return the recipe of a shipped model (`hull`, `hull-ptr-net`), or of a task by its name.

        If `changes` ask for another network, or for learning from other things than the shipped
        recipe, the recipe has the defaults of the task instead, because the other values of the
        shipped recipe were chosen for its network. The same holds for the training, but not for the
        task and the network, if the shipped model was trained in several cycles: its recipe is only
        the last one.

        Raises:
            InputError: no task and no shipped model has this name, or a value is bad.

        Examples:
            >>> Recipe.named("hull").model, Recipe.named("hull-ptr-net").model
            ('transformer-ptr-net', 'ptr-net')
        """
        path = RECIPES / f"{name}.toml"
        if not path.is_file():
            return cls.from_table(changes, task=name)
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        shipped = {"model": cls.model, "learning": cls.learning}
        shipped |= {**tasks.recipe_of(table["task"]), **table}
        if any(changes.get(key, shipped[key]) != shipped[key] for key in ("model", "learning")):
            return cls.from_table(changes, task=table["task"])
        dropped = set(options_of(cls)) - {"model"} if "weights" in table else set(OF_MACHINE)
        if "steps" in changes:
            dropped.add("cycles")  # the schedule then runs once, in that many steps
        table = {key: value for key, value in table.items() if key not in dropped}
        return cls.from_table(table, **changes)

    @classmethod
    def read(cls, path: Path, **changes: Any) -> Self:
        """Return the recipe in a TOML file. `changes` replace some of the values."""
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{path}: no such recipe") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path}: not a TOML file: {error}") from None
        try:
            return cls.from_table(table, **changes)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def table(self) -> dict[str, Any]:
        """Return the recipe as the flat table that `from_table` reads."""
        own = {"task": self.task.name, **to_mapping(self)}
        own |= {name: column for name, column in to_mapping(self.columns).items() if column}
        return {**own, **to_mapping(self.task), **to_mapping(self.network), **own}

    def toml(self) -> str:
        """Return the text of the recipe's TOML file."""
        return to_toml(self.table())


def _shared_settings(model: str, task: Task, n: Sizes) -> dict[str, Any]:
    """Return the settings of a model that follow from the task and from the sizes.

    Raises:
        InputError: the model accepts only one size of instances, but `n` has several sizes.
    """
    names, shared = models.setting_names(model), dict[str, Any]()
    if "repeats" in names:
        shared["repeats"] = task.facts.repeats
    if "answer" in names:
        shared["answer"] = task.facts.answer
    if "n" in names:
        if len(n) > 1:
            raise InputError(f"model {model} needs a single n, such as {n[0]}; got {n}")
        shared["n"] = n[0]
    return shared


def _check_combination(recipe: Recipe) -> None:
    """Raise InputError for sizes that the task does not allow, and for contradictory values."""
    checks.check_sizes(recipe.n, recipe.task)
    optimizers.check(recipe.optimizer)
    if recipe.columns and not (recipe.data and isinstance(recipe.task, Custom)):
        raise InputError("recipe: set_id is for a table of your examples: give data, and no TASK")
    if recipe.columns.group and not recipe.data:
        raise InputError("recipe: group is for a file of examples: give data")
    one_n = getattr(recipe.network, "n", None)  # the only size that the network accepts
    if one_n is not None and recipe.n != (one_n,):
        raise InputError(f"recipe: the network only works for n = {one_n}, got {recipe.n}")
    if recipe.batch_size % (recipe.devices * recipe.nodes):
        raise InputError(
            f"recipe: a batch of {recipe.batch_size} cannot be shared evenly by "
            f"{recipe.devices * recipe.nodes} processes"
        )
    if recipe.examples % recipe.batch_size:
        raise InputError(
            f"recipe: examples: expected a multiple of batch_size {recipe.batch_size}, got "
            f"{recipe.examples}"
        )
    if recipe.steps % recipe.cycles:
        raise InputError(
            f"recipe: steps: expected a multiple of cycles {recipe.cycles}, got {recipe.steps}"
        )
    largest = recipe.n[-1]
    if recipe.batch_size * max(recipe.cuts, 1) * largest > LARGEST_BATCH:
        raise InputError(
            f"recipe: a batch of {recipe.batch_size} instances of {largest} elements is more "
            f"than {LARGEST_BATCH} elements"
        )
    if recipe.task.facts.repeats and not getattr(recipe.network, "repeats", True):
        raise InputError(
            f"recipe: answers of task {recipe.task.name} may repeat elements; set repeats to true"
        )
    if recipe.patience and not (recipe.valid or recipe.valid_batches):
        raise InputError("recipe: patience needs validations, but valid_batches is 0")


def _check_answers(recipe: Recipe) -> None:
    """Check a training on known answers.

    Raises:
        InputError: the labeller is not for this task, the model cannot learn the answers, or an
            option needs another option.
    """
    task = recipe.task
    any_start = task.facts.circular and recipe.cuts > 0  # cuts start tours at random cities
    if task.facts.depends_on_indices and not (recipe.network.sees_order or any_start):
        ways = ["sort elements (order lexicographic)"]
        if "see_indices" in options_of(type(recipe.network)):
            ways.insert(0, "let it see them (see_indices)")
        sequence = options_of(type(task)).get("sequence")
        if sequence and "apexes" in sequence.choices:
            ways.append("let the answers be sequences of apexes (sequence apexes)")
        if task.facts.circular:
            ways.append("train on cuts of tours (cuts)")
        raise InputError(
            f"recipe: answers of task {task.name} depend on indices, which model {recipe.model} "
            f"does not see: {', or '.join(ways)}"
        )
    if recipe.loss == "gains":
        if not (isinstance(task, Custom) and task.kind == "grades"):
            raise InputError("recipe: loss gains needs answers of the kind grades")
        if not recipe.network.scores_once:
            raise InputError(f"recipe: loss gains needs the model set-ptr-net, got {recipe.model}")
    if recipe.examples and recipe.data:
        raise InputError("recipe: examples counts fresh examples, so it cannot be used with data")
    if recipe.augment and not recipe.data:
        raise InputError("recipe: augment needs data: it changes the examples of a file")
    if recipe.valid_share and (recipe.valid or not recipe.data):
        raise InputError("recipe: valid_share needs data, and cannot be used with valid")
    validates_on_file = recipe.valid or recipe.valid_share or not recipe.valid_batches
    draws_examples = not (recipe.data and validates_on_file)
    if draws_examples or (recipe.labeller and not task.facts.labellers):
        labellers.check_labeller(task, recipe.labeller or None)
        labellers.check_max_elements(task, recipe.labeller or None, recipe.n[-1])


def _check_costs(recipe: Recipe) -> None:
    """Raise InputError if the task has no cost, or if an option is only for known answers."""
    if recipe.network.ensemble > 1:
        raise InputError("recipe: ensemble is for learning from answers, not from costs")
    if not (recipe.task.facts.has_costs or isinstance(recipe.task, Custom)):
        raise InputError(
            f"recipe: task {recipe.task.name} has no cost to learn from; set learning to answers"
        )
    for name in ("labeller", "data", "examples", "valid", "augment", "cuts", "loss"):
        if getattr(recipe, name) != getattr(Recipe, name):
            raise InputError(
                f"recipe: {name} is for learning from answers (learning: answers), not from costs"
            )


def recipe_options() -> dict[str, Option]:
    """Return the options of `ptrnet train` by name: every key of a recipe except the task.

    If an option has a list of values, its help text ends with this list.
    """
    own = options_of(Recipe)
    options = {**options_of(TrainingColumns), **_task_options(own), **own, **_model_options(own)}
    names = {
        "model": " | ".join(models.names()),
        "labeller": _labellers(),
        "optimizer": " | ".join(optimizers.names()),
    }
    return {
        name: replace(option, help=f"{option.help}: {known}") if known else option
        for name, option in options.items()
        for known in [names.get(name, " | ".join(option.choices))]
    }


def _labellers() -> str:
    """Return the names of the labellers of each task that has two or more labellers."""
    choices = ((name, labellers.names_for(tasks.get(name))) for name in tasks.names())
    return "; ".join(f"{name} {' | '.join(names)}" for name, names in choices if len(names) > 1)


def _task_options(of_recipe: Mapping[str, Option]) -> dict[str, Option]:
    """Return the settings of all tasks, except settings that are inferred from examples."""
    custom, shared = options_of(Custom), options_of(Task)
    options = {
        "kind": replace(custom["kind"], default="guessed", help="kind of the answers"),
        "constraint": Option(
            "constraint",
            Literal[tuple(CONSTRAINTS)],
            "",
            "another name of --kind, in which free means sequence",
        ),
        "ordered": Option("ordered", bool, False, "the network sees the order of the elements"),
        "fields": replace(
            custom["fields"],
            type=str,
            default="all",
            help="fields of elements that the model reads, such as price,colour",
        ),
        "context": replace(
            custom["context"],
            type=str,
            default="found",
            help="fields of the whole set, such as income,age",
        ),
        "categories": replace(
            custom["categories"],
            type=str,
            default="texts",
            help="fields that are categories, even if their values are numbers, such as "
            "purpose,origin",
        ),
        "missing": replace(custom["missing"], help="whether to fill or refuse missing values"),
        "unknown": replace(
            custom["unknown"],
            help="whether the model treats values that no example has as missing, or refuses them",
        ),
    }
    options = {k: replace(option, owners=(OWN_EXAMPLES,)) for k, option in options.items()}
    for task in [*tasks.names(), *tasks.problem_names()]:
        for name, option in options_of(tasks.kind(task)).items():
            if name in of_recipe:
                raise InputError(
                    f"task {task}: setting {name}: a recipe has a field of that name; rename it"
                )
            known = options[name].owners if name in options else ()
            owners = (ANY_TASK,) if name in shared else (*known, task)
            options[name] = replace(option, owners=owners)
    return options


def _model_options(of_recipe: Mapping[str, Option]) -> dict[str, Option]:
    """Return every setting of any model, except `n`, which is a field of `Recipe`."""
    shared = options_of(ModelSettings)
    options = {
        name: replace(option, owners=() if name in shared else (NETWORKS,))
        for name, option in every_setting().items()
        if name != "n"
    }
    for name in options.keys() & of_recipe.keys():
        raise InputError(f"model setting {name}: a recipe has a field of that name; rename it")
    return options
