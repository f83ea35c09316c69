"""The recipe of a training: the task, the network, and all other settings.

`Recipe` holds objects: the task, the sizes, the settings of the network. A recipe's file is a flat
table (`Recipe.from_table`): it has one key for each setting of the training, the task and the
network. `ptrnet train` has an option for each of these keys (`recipe_options`).
`ptrnet.training.own_data` makes the recipe for a user's file of examples.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from ptrnet import labellers, models, tasks
from ptrnet.data import checks
from ptrnet.data.columns import NO_COLUMNS, TrainingColumns
from ptrnet.errors import InputError, listed, unknown
from ptrnet.models.settings import ModelSettings, every_setting
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
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import CONSTRAINTS, Custom
from ptrnet.training import optimizers
from ptrnet.types import Sizes

RECIPES = Path(str(files("ptrnet") / "recipes"))  # NAME.toml of each shipped model
LARGEST_BATCH = 2**24  # elements, padding included
# Settings of a shipped model's recipe that suit the machine on which we trained it.
OF_MACHINE = ("devices", "precision")
# The settings of models that are not trained in steps, besides those of the task and the names of
# columns. The seed draws the examples that are kept for validation.
OF_AT_ONCE = ("model", "data", "n", "valid", "valid_share", "valid_batches", "seed", "nests")
# Settings that a search (`ptrnet tune`) cannot have: weights of another model fit networks of one
# size, folds have examples of all sizes, and trials run in one process and keep no checkpoint.
NOT_TUNED = ("n", "weights", "devices", "nodes", "checkpoint_every")
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
class Data(Settings):
    """The examples of a training and of its validations, and their batches."""

    data: str = setting("", "file of examples to train on; without it, ptrnet draws fresh examples")
    n: Sizes = setting(
        Sizes("5-50"), "sizes of the instances, such as 50, 5-50 or 5,10,20-30", owner=ANY_TASK
    )
    batch_size: int = setting(128, "examples in an update", ge=1)
    labeller: str = setting(
        "",
        "algorithm that answers fresh examples; without it, the first one of the task",
        owner=ANY_TASK,
    )
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
    cuts: int = setting(
        0,
        "learn only the tokens after a random cut of the answers, from this many copies of each "
        "tour, which begin at random cities; 0: learn whole answers",
        ge=0,
        owner=ANY_TASK,
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


@dataclass(frozen=True, kw_only=True)
class Objective(Settings):
    """What a training minimises."""

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
        16, "learning from costs: number of answers to sample for each instance", ge=2, owner=COSTS
    )
    baseline: Literal["mean", "greedy"] = setting(
        "mean",
        "reinforce: compare a sample's cost with the mean of the other samples, or with the greedy "
        "answer",
        owner=COSTS,
    )

    @property
    def has_answers(self) -> bool:
        """Whether the training learns from known answers, not from costs."""
        return self.learning == "answers"


@dataclass(frozen=True, kw_only=True)
class Optimiser(Settings):
    """How weights are updated, and by how much at each step."""

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

    def __post_init__(self) -> None:
        super().__post_init__()
        optimizers.check(self.optimizer)


@dataclass(frozen=True, kw_only=True)
class Run(Settings):
    """Where and how long a training runs, and when it validates and saves."""

    steps: int = setting(
        60_000,
        "updates of the weights; for your own examples, the default follows from their number",
        ge=1,
    )
    weights: str = setting(
        "",
        "start with the weights of this model: a shipped one, an id on the hub, or the folder of a "
        "model or of a stopped run",
    )
    seed: int = setting(1, "seed of the initial weights and of the examples", ge=0, lt=2**63)
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
    valid_every: int = setting(
        2000, "steps between validations; for your own examples, a 20th of the steps", ge=1
    )
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


# The parts of a recipe whose settings do not depend on the task or the model.
PARTS: dict[str, type[Settings]] = {
    "data": Data,
    "objective": Objective,
    "optimiser": Optimiser,
    "run": Run,
    "columns": TrainingColumns,
}


@dataclass(frozen=True, kw_only=True)
class Recipe(Settings):
    """A training: a task, a model, and settings in parts.

    Its file and the command line have the settings of all parts in one flat table, so a name
    belongs to a single part. `of` and `from_table` make a recipe from such a table.

    Args:
        objective: what the training minimises.
        run: where and how long the training runs.
        columns: if the file of examples is a long table, the names of the columns that hold the
            ids of sets and the answers.
    """

    task: Task
    network: ModelSettings
    model: str = setting("ptr-net", "architecture of the network")
    data: Data = Data()
    objective: Objective = Objective()
    optimiser: Optimiser = Optimiser()
    run: Run = Run()
    columns: TrainingColumns = NO_COLUMNS

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_combination(self)
        (_check_answers if self.objective.has_answers else _check_costs)(self)

    @classmethod
    def from_table(cls, table: Mapping[str, Any] = {}, /, **changes: Any) -> Self:
        """Return the recipe of a flat table. `changes` replace some of the values.

        The keys are `task` (a name), and the settings of the task, the model and all parts. Raises
        InputError if a key is unknown (the message suggests the nearest key), or a value is bad.
        """
        table = {**table, **changes}
        if "task" not in table:
            raise InputError('recipe: the key "task" is missing')
        name = str(table.pop("task"))
        table, of_task = {**tasks.recipe_defaults(name), **table}, options_of(tasks.kind(name))
        return cls.of(tasks.get(name, **{k: table.pop(k) for k in of_task if k in table}), table)

    @classmethod
    def of(cls, task: Task, table: Mapping[str, Any]) -> Self:
        """Return the recipe of a task, and of the flat settings of the model and all parts.

        Raises:
            InputError: a key is unknown (the message suggests the nearest key), a value is bad, or
                the model is not for the task.
        """
        model = str(table.get("model", cls.model))
        if (model == models.STATES) != task.facts.exact_inputs:  # only problems have exact inputs
            if model == models.STATES:
                raise InputError(
                    f"recipe: model {model} is only for problems, and {task.name} is a task"
                )
            raise InputError(
                f"recipe: problem {task.name} needs model {models.STATES}, got {model}"
            )
        if model in models.AT_ONCE:
            _check_at_once(model, task, table)
        own = ["model", *part_options()]
        of_model = [key for key in models.setting_names(model) if key not in own]
        for key in table:
            if key in own or key in of_model:
                continue
            if key in every_setting():
                every = (*models.names(), *models.UNLISTED)
                others = listed(name for name in every if key in models.setting_names(name))
                error = unknown(f"setting of model {model}", key, of_model)
                raise InputError(f"{error}; it is a setting of {others}")
            if key in ELSEWHERE:
                raise InputError(f"unknown recipe key {key!r}; did you mean {ELSEWHERE[key]}?")
            raise unknown("recipe key", key, ["task", *own, *tasks.settings_of(task), *of_model])
        parts: dict[str, Any] = {
            name: part(**{key: table[key] for key in options_of(part) if key in table})
            for name, part in PARTS.items()
        }
        shared = _shared_settings(model, task, parts["data"].n)
        given = {key: table[key] for key in of_model if key in table}
        network = models.settings_of(model, **{**shared, **given})
        return cls(task=task, model=model, network=network, **parts)

    def replace(self, **changes: Any) -> Self:
        """Return the recipe with other values of some settings, by their flat names."""
        return type(self).from_table(self.table(), **changes)

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
        shipped = {"model": cls.model, "learning": Objective.learning}
        shipped |= {**tasks.recipe_defaults(table["task"]), **table}
        if any(changes.get(key, shipped[key]) != shipped[key] for key in ("model", "learning")):
            return cls.from_table(changes, task=table["task"])
        dropped = set(part_options()) if "weights" in table else set(OF_MACHINE)
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
        own = {"task": self.task.name, "model": self.model}
        for name in PARTS:
            own |= to_mapping(getattr(self, name))
        columns = options_of(TrainingColumns)
        own = {k: v for k, v in own.items() if v or k not in columns}
        of_network = to_mapping(self.network)
        if self.model in models.AT_ONCE:
            kept = ("task", *OF_AT_ONCE, *columns)
            own, of_network = (
                {k: v for k, v in part.items() if k in kept} for part in (own, of_network)
            )
        # `own` comes first in the file, and comes last to decide: a network may have an `n`, too.
        return {**own, **tasks.settings_of(self.task), **of_network, **own}

    def toml(self) -> str:
        """Return the text of the recipe's TOML file."""
        return to_toml(self.table())


def part_options() -> dict[str, Option]:
    """Return the settings of all PARTS by name."""
    return {key: option for part in PARTS.values() for key, option in options_of(part).items()}


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
    data, run, cycles = recipe.data, recipe.run, recipe.optimiser.cycles
    checks.check_sizes(data.n, recipe.task)
    if recipe.columns and not (data.data and isinstance(recipe.task, Custom)):
        raise InputError("recipe: set_id is for a table of your examples: give data, and no TASK")
    if recipe.columns.group and not data.data:
        raise InputError("recipe: group is for a file of examples: give data")
    one_n = getattr(recipe.network, "n", None)  # the only size that the network accepts
    if one_n is not None and data.n != (one_n,):
        raise InputError(f"recipe: the network only works for n = {one_n}, got {data.n}")
    if data.batch_size % (run.devices * run.nodes):
        raise InputError(
            f"recipe: a batch of {data.batch_size} cannot be shared evenly by "
            f"{run.devices * run.nodes} processes"
        )
    if data.examples % data.batch_size:
        raise InputError(
            f"recipe: examples: expected a multiple of batch_size {data.batch_size}, got "
            f"{data.examples}"
        )
    if recipe.task.facts.signs.any():
        if recipe.task.facts.repeats:
            raise InputError(
                "recipe: increasing, decreasing: no model guarantees signs for answers of the kind "
                "sequence, which may repeat elements"
            )
        if not recipe.network.keeps_signs:
            raise InputError(
                f"recipe: increasing, decreasing: model {recipe.model} guarantees no signs; "
                "set-ptr-net does (without ordered), and for choices conditional-logit"
            )
    if run.steps % cycles:
        raise InputError(f"recipe: steps: expected a multiple of cycles {cycles}, got {run.steps}")
    largest = data.n[-1]
    if data.batch_size * max(data.cuts, 1) * largest > LARGEST_BATCH:
        raise InputError(
            f"recipe: a batch of {data.batch_size} instances of {largest} elements is more "
            f"than {LARGEST_BATCH} elements"
        )
    if recipe.task.facts.repeats and not getattr(recipe.network, "repeats", True):
        raise InputError(
            f"recipe: answers of task {recipe.task.name} may repeat elements; set repeats to true"
        )
    if run.patience and not (data.valid or data.valid_batches):
        raise InputError("recipe: patience needs validations, but valid_batches is 0")


def _check_answers(recipe: Recipe) -> None:
    """Check a training on known answers.

    Raises:
        InputError: the labeller is not for this task, the model cannot learn the answers, or an
            option needs another option.
    """
    task, data = recipe.task, recipe.data
    any_start = task.facts.circular and data.cuts > 0  # cuts start tours at random cities
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
    if recipe.objective.loss == "gains":
        if not (isinstance(task, Custom) and task.kind == "grades"):
            raise InputError("recipe: loss gains needs answers of the kind grades")
        if not recipe.network.scores_once:
            raise InputError(f"recipe: loss gains needs the model set-ptr-net, got {recipe.model}")
    for name in ("trees", "spaces"):
        if not getattr(recipe.network, name, 0):
            continue
        if task.facts.kind not in ("choice", "grades"):
            raise InputError(f"recipe: {name} are for answers of the kinds choice and grades")
        if getattr(recipe.network, "positions", 0):
            raise InputError(
                f"recipe: position: set {name} to 0, because they would learn the positions"
            )
        if not (data.valid or data.valid_share):
            raise InputError(
                f"recipe: {name} need validation examples, which decide how much they count: give "
                f"valid or valid_share, or set {name} to 0"
            )
        if name == "spaces" and task.facts.signs.any():
            raise InputError("recipe: increasing, decreasing: set spaces to 0; they keep no signs")
    if data.examples and data.data:
        raise InputError("recipe: examples counts fresh examples, so it cannot be used with data")
    if data.augment and not data.data:
        raise InputError("recipe: augment needs data: it changes the examples of a file")
    if data.valid_share and (data.valid or not data.data):
        raise InputError("recipe: valid_share needs data, and cannot be used with valid")
    validates_on_file = data.valid or data.valid_share or not data.valid_batches
    draws_examples = not (data.data and validates_on_file)
    if draws_examples or (data.labeller and not task.facts.labellers):
        labellers.check_labeller(task, data.labeller or None)
        labellers.check_max_elements(task, data.labeller or None, data.n[-1])


def _check_at_once(model: str, task: Task, table: Mapping[str, Any]) -> None:
    """Raise InputError if a model without steps is not for the answers, or ignores an option."""
    kinds = ("choice",) if model == models.LOGIT else ("choice", "grades")
    if task.facts.kind not in kinds:
        raise InputError(
            f"recipe: model {model} is for your own examples of the kind {' or '.join(kinds)}, got "
            f"{task.facts.kind or f'task {task.name}'}"
        )
    options = {**every_setting(), **part_options()}
    for key in table.keys() & options.keys() - {*OF_AT_ONCE, *options_of(TrainingColumns)}:
        if table[key] != options[key].default:
            raise InputError(
                f"recipe: {key} has no effect on model {model}, which is not trained in steps"
            )


def _check_costs(recipe: Recipe) -> None:
    """Raise InputError if the task has no cost, or if an option is only for known answers."""
    if recipe.network.ensemble > 1:
        raise InputError("recipe: ensemble is for learning from answers, not from costs")
    if not (recipe.task.facts.has_costs or isinstance(recipe.task, Custom)):
        raise InputError(
            f"recipe: task {recipe.task.name} has no cost to learn from; set learning to answers"
        )
    for name in ("labeller", "data", "examples", "valid", "augment", "cuts", "loss"):
        if recipe.table()[name] != part_options()[name].default:
            raise InputError(
                f"recipe: {name} is for learning from answers (learning: answers), not from costs"
            )


def recipe_options(of_tasks: Sequence[str]) -> dict[str, Option]:
    """Return the options of `ptrnet train` by name: every key of a recipe except the task.

    If an option has a list of values, its help text ends with this list.

    Args:
        of_tasks: the names of the tasks whose settings are options, besides those of own examples.
    """
    own = {**options_of(Recipe), **part_options()}
    options = {**_task_options(own, of_tasks), **own, **_model_options(own)}
    own_names = [name for name in tasks.names() if name in of_tasks]  # others are not imported
    of_each = {name: labellers.names_for(tasks.get(name)) for name in own_names}
    names = {
        "model": " | ".join([*models.names(), *models.AT_ONCE]),
        "labeller": "; ".join(
            f"{name} {' | '.join(known)}" for name, known in of_each.items() if len(known) > 1
        ),
        "optimizer": " | ".join(optimizers.names()),
    }
    return {
        name: replace(option, help=f"{option.help}: {known}") if known else option
        for name, option in options.items()
        for known in [names.get(name, " | ".join(option.choices))]
    }


def _task_options(of_recipe: Mapping[str, Option], of_tasks: Sequence[str]) -> dict[str, Option]:
    """Return the settings of tasks and of own examples, except those inferred from examples."""
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
    }
    texts = {  # what the help says about settings that a user may give as a text
        "fields": ("all", "fields of elements that the model reads, such as price,colour"),
        "context": ("found", "fields of the whole set, such as income,age"),
        "categories": (
            "texts",
            "fields that are categories, even if their values are numbers, such as purpose,origin",
        ),
        "increasing": (
            "none",
            "fields of which a higher number never makes an element less probable, such as "
            "rating,comfort",
        ),
        "decreasing": (
            "none",
            "fields of which a higher number never makes an element more probable, such as "
            "price,time",
        ),
        "gains": ("2^grade - 1", "grades: the gains of grades 0, 1, 2, ..., such as 0,1,3,10"),
    }
    for name, (default, help) in texts.items():
        options[name] = replace(custom[name], type=str, default=default, help=help)
    unseen = "whether the model treats values that no example has as missing, or refuses them"
    helps = {"missing": "whether to fill or refuse missing values", "unknown": unseen}
    options |= {name: replace(custom[name], help=help) for name, help in helps.items()}
    options = {k: replace(option, owners=(OWN_EXAMPLES,)) for k, option in options.items()}
    for task in of_tasks:
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
        name: replace(option, owners=option.owners or (() if name in shared else (NETWORKS,)))
        for name, option in every_setting().items()
        if name != "n"
    }
    for name in options.keys() & of_recipe.keys():
        raise InputError(f"model setting {name}: a recipe has a field of that name; rename it")
    return options
