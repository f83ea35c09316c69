"""A recipe: everything that decides what a training does, as one flat table."""

import json
import tomllib
import typing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_type_hints

from ptrnet import models, tasks
from ptrnet.data import checks
from ptrnet.data.sizes import parse_sizes
from ptrnet.errors import InputError, unknown
from ptrnet.models.settings import every_setting, resolve_aliases
from ptrnet.settings import check_type

LARGEST_BATCH = 2**24  # elements, padding included
# What other libraries call a field.
_STEPS = "'steps', the updates of the weights (an epoch has as many as there are batches)"
ELSEWHERE = {
    "lr": "'learning_rate'",
    "eta": "'learning_rate'",
    **dict.fromkeys(("epochs", "n_epochs", "num_epochs", "max_epochs"), _STEPS),
    **dict.fromkeys(("iterations", "max_iter", "max_steps", "n_steps", "num_steps"), "'steps'"),
    **dict.fromkeys(("bs", "batch", "batchsize"), "'batch_size'"),
    **dict.fromkeys(("units", "hidden", "hidden_dim", "dim", "d_model"), "'hidden_size'"),
    **dict.fromkeys(("random_state", "random_seed"), "'seed'"),
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
_TABLES = ("settings", "model_settings")  # fields whose entries are keys of their own in a file


def _field(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Recipe:
    """The fields of a recipe file, and the options of `ptrnet train`, by the same names."""

    task: str
    model: str = _field("ptr-net", "the architecture")
    labeller: str = _field("", "algorithm that answers fresh examples; the task's first if none")
    data: str = _field("", "file of examples to train on; fresh ones if none is given")
    examples: int = _field(
        0, "fresh examples that there are, each once in an epoch; 0: new ones without end"
    )
    augment: bool = _field(False, "with data: elements shuffled, the square turned or mirrored")
    n: str = _field("5-50", "sizes of the instances: 50, 5-50 or 5,10,20-30")
    steps: int = _field(60_000, "updates of the weights; by default 20,000 on own examples")
    batch_size: int = _field(128, "examples in an update")
    cuts: int = _field(
        0, "random cuts of each answer, after which the next token is learned; 0: whole answers"
    )
    learning: Literal["answers", "self-labelling", "reinforce"] = _field(
        "answers", "from known answers; or from costs: the cheapest of the model's samples, or all"
    )
    samples: int = _field(16, "learning from costs: answers that are sampled to each instance")
    baseline: Literal["mean", "greedy"] = _field(
        "mean", "reinforce: a sample's cost is compared with the other samples', or with greedy's"
    )
    weights: str = _field(
        "",
        "model whose weights the training begins with: a shipped one, a hub id, or a folder of a "
        "model or of a run that was stopped",
    )
    hidden_size: int = _field(256, "units of encoder and decoder")
    optimizer: Literal["adamw", "sgd", "adadelta-rmsprop"] = _field(
        "adamw",
        "adamw; sgd as in Vinyals et al.; or, as in Wang and Wang, adadelta for half of the steps, "
        "then rmsprop at a thousandth of its rate",
    )
    learning_rate: float = _field(
        2e-3, "its peak (1.0 with sgd in Vinyals et al., and for adadelta)"
    )
    schedule: Literal["one-cycle", "constant"] = _field(
        "one-cycle", "one-cycle: linear warm-up, cosine decay to zero"
    )
    warmup: float = _field(0.05, "share of the steps in which the rate rises")
    beta1: float = _field(0.9, "adamw: decay of the mean gradient")
    beta2: float = _field(0.98, "adamw: decay of the mean squared gradient")
    weight_decay: float = _field(0.01, "adamw: decoupled weight decay")
    clip: float = _field(2.0, "largest L2 norm of the gradient")
    precision: Literal["auto", "bfloat16", "tf32", "float32"] = _field(
        "auto", "of the large products; auto: bfloat16 where the hardware has it; tf32: cuda only"
    )
    device: Literal["auto", "cpu", "cuda"] = _field("auto", "where to train")
    devices: int = _field(1, "processes of a machine that share each batch, a GPU each with cuda")
    nodes: int = _field(1, "machines that share each batch")
    seed: int = _field(1, "of the weights and of the examples")
    valid_every: int = _field(2000, "steps between validations; by default 500 on own examples")
    valid: str = _field("", "file of examples to validate on; fresh ones if none is given")
    valid_share: float = _field(
        0.0, "with data: share of its examples kept to validate on; 0.1 on own ones"
    )
    valid_batches: int = _field(16, "batches of a validation, of fresh or kept examples")
    patience: int = _field(
        0,
        "validations without a better loss after which training ends, the best kept; 0: none; "
        "by default 10 on own examples",
    )
    checkpoint_every: int = _field(1000, "steps between checkpoints")
    settings: dict[str, Any] = field(default_factory=dict)  # of the task, by its own names
    model_settings: dict[str, Any] = field(default_factory=dict)  # of the model, likewise

    def __post_init__(self) -> None:
        _check_values(self)
        _check_combination(self)
        (_check_answers if self.learning == "answers" else _check_costs)(self)

    def network(self) -> dict[str, Any]:
        """The settings that the model is built with.

        `hidden_size` and `n` are the recipe's, `repeats` is the task's.

        Raises:
            InputError: the model serves one number of elements, and the recipe has several.
        """
        shared: dict[str, Any] = {"hidden_size": self.hidden_size}
        if "repeats" in models.setting_names(self.model):
            shared["repeats"] = tasks.get(self.task, **self.settings).repeats
        if "n" in models.setting_names(self.model):
            sizes = parse_sizes(self.n)
            if len(sizes) > 1:
                raise InputError(f"model {self.model} has one n, such as {sizes[0]}; got {self.n}")
            shared["n"] = sizes[0]
        return {**shared, **self.model_settings}

    @classmethod
    def from_table(cls, table: dict[str, Any]) -> Self:
        """A recipe from flat keys: fields, and settings of its task and of its model.

        Raises:
            InputError: a key that is none of these (the nearest is suggested), or a bad value.
        """
        if "task" not in table:
            raise InputError('recipe: the key "task" is missing')
        table = {**resolve_aliases(table), "task": tasks.current_name(str(table["task"]))}
        recipe_keys = [f.name for f in fields(cls) if f.name not in _TABLES]
        task_keys = tasks.kind(table["task"]).settings()
        model = str(table.get("model", cls.model))
        model_keys = [key for key in models.setting_names(model) if key not in recipe_keys]
        for key in table:
            if key in (*recipe_keys, *task_keys, *model_keys):
                continue
            if key in every_setting():
                raise unknown(f"setting of model {model}", key, model_keys)
            if key in ELSEWHERE:
                raise InputError(f"unknown recipe key {key!r}; did you mean {ELSEWHERE[key]}?")
            raise unknown("recipe key", key, [*recipe_keys, *task_keys, *model_keys])
        return cls(
            **{key: value for key, value in table.items() if key in recipe_keys},
            settings={key: value for key, value in table.items() if key in task_keys},
            model_settings={key: value for key, value in table.items() if key in model_keys},
        )

    @classmethod
    def read(cls, path: Path, **changes: Any) -> Self:
        """The recipe in a TOML file, with `changes` over it."""
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{path}: no such recipe") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path}: not a TOML file: {error}") from None
        try:
            return cls.from_table({**resolve_aliases(table), **resolve_aliases(changes)})
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def table(self) -> dict[str, Any]:
        """The flat keys again; what `from_table` takes."""
        table = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _TABLES}
        task = tasks.get(self.task, **self.settings)
        network = vars(models.settings_of(self.model, **self.network()))
        return {
            **table,
            **{name: getattr(task, name) for name in task.settings()},
            **{name: value for name, value in network.items() if name not in table},
        }

    def toml(self) -> str:
        """The recipe as a file."""
        return "".join(f"{key} = {_toml(value)}\n" for key, value in self.table().items())


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _check_values(recipe: Recipe) -> None:
    """Refuses a value of another type, or out of range. Raises InputError."""
    hints = typing.get_type_hints(type(recipe))
    for f in fields(recipe):
        if typing.get_origin(hints[f.name]) is not dict:
            check_type(f.name, getattr(recipe, f.name), hints[f.name])
    for name in ("steps", "batch_size", "valid_every", "checkpoint_every", "devices", "nodes"):
        _check_minimum(name, getattr(recipe, name), 1)
    if recipe.batch_size % (recipe.devices * recipe.nodes):
        raise InputError(
            f"recipe: a batch of {recipe.batch_size} cannot be shared evenly by "
            f"{recipe.devices * recipe.nodes} processes"
        )
    _check_minimum("samples", recipe.samples, 2)
    for name in ("examples", "cuts", "valid_batches", "patience", "seed"):
        _check_minimum(name, getattr(recipe, name), 0)
    if recipe.examples % recipe.batch_size:
        raise InputError(
            f"recipe: {recipe.examples} examples are no whole number of batches of "
            f"{recipe.batch_size}"
        )
    for name in ("learning_rate", "clip"):
        if not 0 < getattr(recipe, name) < float("inf"):
            raise InputError(f"recipe: {name} must be above 0, got {getattr(recipe, name)}")
    for name in ("warmup", "beta1", "beta2", "weight_decay", "valid_share"):
        if not 0 <= getattr(recipe, name) < 1:
            raise InputError(f"recipe: {name} must be in [0, 1), got {getattr(recipe, name)}")
    largest = parse_sizes(recipe.n)[-1]
    if recipe.batch_size * max(recipe.cuts, 1) * largest > LARGEST_BATCH:
        raise InputError(
            f"recipe: a batch of {recipe.batch_size} instances of {largest} elements is more "
            f"than {LARGEST_BATCH} elements"
        )
    if recipe.seed >= 2**63:
        raise InputError(f"recipe: seed must be below 2^63, got {recipe.seed}")


def _check_combination(recipe: Recipe) -> None:
    """Refuses what the task or the model does not know, and values that contradict each other.

    Raises:
        InputError: a setting or a size that does not serve.
    """
    task = tasks.get(recipe.task, **recipe.settings)
    checks.check_sizes(parse_sizes(recipe.n), task)
    models.settings_of(recipe.model, **recipe.network())
    if task.repeats and recipe.model_settings.get("repeats") is False:
        raise InputError(f"recipe: answers of task {recipe.task} may repeat elements (repeats)")
    if recipe.patience and not (recipe.valid or recipe.valid_batches):
        raise InputError("recipe: patience goes with validations, valid_batches is 0")


def _check_answers(recipe: Recipe) -> None:
    """Refuses a training on answers that cannot be had, or not be learned.

    Raises:
        InputError: a labeller that does not serve; a model that cannot tell the answers; options
            without which another one has no meaning.
    """
    task, sizes = tasks.get(recipe.task, **recipe.settings), parse_sizes(recipe.n)
    network = models.settings_of(recipe.model, **recipe.network())
    any_start = task.circular and recipe.cuts > 0  # where a tour starts is not learned then
    if task.depends_on_indices and not (network.sees_order or any_start):
        ways = ["sort elements (order lexicographic)"]
        if "see_indices" in models.setting_names(recipe.model):
            ways.insert(0, "let it see them (see_indices)")
        if "apexes" in get_args(get_type_hints(type(task)).get("sequence")):
            ways.append("grow triangulations by apexes (sequence apexes)")
        if task.circular:
            ways.append("train on cuts of tours (cuts)")
        raise InputError(
            f"recipe: answers of task {recipe.task} depend on indices, which model {recipe.model} "
            f"does not see: {', or '.join(ways)}"
        )
    if recipe.examples and recipe.data:
        raise InputError("recipe: examples counts fresh ones; data has its own")
    if recipe.augment and not recipe.data:
        raise InputError("recipe: augment goes with data; fresh examples are new without it")
    if recipe.valid_share and (recipe.valid or not recipe.data):
        raise InputError("recipe: valid_share goes with data, and without valid")
    validates_on_file = recipe.valid or recipe.valid_share or not recipe.valid_batches
    draws_examples = not (recipe.data and validates_on_file)
    if draws_examples or (recipe.labeller and not task.labellers):
        task.check_labeller(recipe.labeller or None)
        task.check_max_elements(recipe.labeller or None, sizes[-1])


def _check_costs(recipe: Recipe) -> None:
    """Refuses a training from costs of a task without any, and options of one on answers."""
    task = tasks.get(recipe.task, **recipe.settings)
    if not (task.has_costs or recipe.task == tasks.CUSTOM):
        raise InputError(f"recipe: task {recipe.task} has no cost; learning: expected answers")
    for name in ("labeller", "data", "examples", "valid", "augment", "cuts"):
        if getattr(recipe, name):
            raise InputError(f"recipe: {name} goes with learning from answers, not from costs")


def _check_minimum(name: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise InputError(f"recipe: {name} must be {minimum} or more, got {value}")
