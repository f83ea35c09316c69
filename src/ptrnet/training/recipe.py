"""A recipe: everything that decides what a training does, as one flat table."""

import json
import tomllib
import typing
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self

from ptrnet import models, tasks
from ptrnet.data import checks
from ptrnet.data.sizes import parse_sizes
from ptrnet.errors import InputError, unknown
from ptrnet.models.settings import every_setting
from ptrnet.settings import check
from ptrnet.tasks.base import Task

LARGEST_BATCH = 2**24  # elements, padding included
_TABLES = ("settings", "model_settings")  # of a recipe, flat in its file


def _field(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Recipe:
    """The fields of a recipe file, and the options of `ptrnet train`, by the same names."""

    task: str
    model: str = _field("ptr-net", "the architecture")
    labeller: str = _field("", "algorithm that answers fresh examples; the task's first if none")
    data: str = _field("", "file of examples to train on; fresh ones if none is given")
    augment: bool = _field(False, "with data: elements shuffled, the square turned or mirrored")
    n: str = _field("5-50", "sizes of the instances: 50, 5-50 or 5,10,20-30")
    steps: int = _field(60_000, "updates of the weights")
    batch_size: int = _field(128, "examples in an update")
    cuts: int = _field(
        0, "random cuts of each answer, behind which the next token is learned; 0: whole answers"
    )
    hidden_size: int = _field(256, "units of encoder and decoder")
    optimizer: Literal["adamw", "sgd"] = _field("adamw", "adamw, or sgd as in Vinyals et al.")
    learning_rate: float = _field(2e-3, "its peak (1.0 with sgd in Vinyals et al.)")
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
    valid_every: int = _field(2000, "steps between validations")
    valid: str = _field("", "file of examples to validate on; fresh ones if none is given")
    valid_share: float = _field(0.0, "with data: share of its examples kept to validate on")
    valid_batches: int = _field(16, "batches of a validation, of fresh or kept examples")
    patience: int = _field(
        0, "validations without a better loss after which training ends, the best kept; 0: none"
    )
    checkpoint_every: int = _field(1000, "steps between checkpoints")
    settings: dict[str, Any] = field(default_factory=dict)  # of the task, by its own names
    model_settings: dict[str, Any] = field(default_factory=dict)  # of the model, likewise

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for f in fields(self):
            if f.name not in _TABLES:
                check(f.name, getattr(self, f.name), hints[f.name])
        for name in ("steps", "batch_size", "valid_every", "checkpoint_every", "devices", "nodes"):
            _at_least(name, getattr(self, name), 1)
        if self.batch_size % (self.devices * self.nodes):
            raise InputError(
                f"recipe: a batch of {self.batch_size} cannot be shared evenly by "
                f"{self.devices * self.nodes} processes"
            )
        _at_least("cuts", self.cuts, 0)
        _at_least("valid_batches", self.valid_batches, 0)
        _at_least("patience", self.patience, 0)
        _at_least("seed", self.seed, 0)
        for name in ("learning_rate", "clip"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"recipe: {name} must be above 0, got {getattr(self, name)}")
        for name in ("warmup", "beta1", "beta2", "weight_decay", "valid_share"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"recipe: {name} must be in [0, 1), got {getattr(self, name)}")
        largest = parse_sizes(self.n)[-1]
        if self.batch_size * max(self.cuts, 1) * largest > LARGEST_BATCH:
            raise InputError(
                f"recipe: a batch of {self.batch_size} instances of {largest} elements is more "
                f"than {LARGEST_BATCH} elements"
            )
        if self.seed >= 2**63:
            raise InputError(f"recipe: seed must be below 2^63, got {self.seed}")
        task = tasks.get(self.task, **self.settings)
        checks.sizes(parse_sizes(self.n), task)
        models.settings_of(self.model, **self.network())
        if self.augment and not self.data:
            raise InputError("recipe: augment goes with data; fresh examples are new without it")
        if self.valid_share and (self.valid or not self.data):
            raise InputError("recipe: valid_share goes with data, and without valid")
        if self.patience and not (self.valid or self.valid_batches):
            raise InputError("recipe: patience goes with validations, valid_batches is 0")
        drawn = not (self.data and (self.valid or self.valid_share or not self.valid_batches))
        if drawn or (self.labeller and not task.labellers):
            task.check_labeller(self.labeller or None, largest)

    def network(self) -> dict[str, Any]:
        """What the model is built with: its settings, of which the recipe knows three by itself.

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
        known = [f.name for f in fields(cls) if f.name not in _TABLES]
        own = tasks.kind(str(table["task"])).settings()
        model = str(table.get("model", cls.model))
        of_model = _beside(known, models.setting_names(model))
        for key in table:
            if key in every_setting() and key not in (*known, *of_model):
                raise unknown(f"setting of model {model}", key, of_model)
            if key not in (*known, *own, *of_model):
                raise unknown("recipe key", key, [*known, *own, *of_model])
        return cls(
            **{k: v for k, v in table.items() if k in known},
            settings={k: v for k, v in table.items() if k in own},
            model_settings={k: v for k, v in table.items() if k in of_model},
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
            return cls.from_table({**table, **changes})
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def table(self) -> dict[str, Any]:
        """The flat keys again; what `from_table` takes."""
        flat = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _TABLES}
        task = tasks.get(self.task, **self.settings)
        network = models.settings_of(self.model, **self.network())
        return {
            **flat,
            **{name: getattr(task, name) for name in task.settings()},
            **{name: getattr(network, name) for name in _beside(flat, vars(network))},
        }

    def toml(self) -> str:
        """The recipe as a file."""
        return "".join(f"{key} = {_toml(value)}\n" for key, value in self.table().items())


def option_fields() -> dict[str, tuple[Any, Any, str]]:
    """Name, type, default and help of every field but the task, for the command line."""
    hints = typing.get_type_hints(Recipe)
    return {
        f.name: (hints[f.name], f.default, f.metadata["help"])
        for f in fields(Recipe)
        if f.default is not MISSING
    }


def task_settings() -> dict[str, tuple[Any, Any, str]]:
    """Name, type, default and help of every setting that some task has."""
    found = {}
    fields_of_all = Task.settings()
    for name in tasks.names():
        cls = tasks.kind(name)
        hints = typing.get_type_hints(cls)
        for f in fields(cls):
            choices = " | ".join(typing.get_args(hints[f.name]))
            whose = "" if f.name in fields_of_all else f"task {name}: "
            text = f"{whose}{f.metadata['help']}{choices and f', {choices}'}"
            found[f.name] = (hints[f.name], f.default, text)
    return found


def model_settings() -> dict[str, tuple[Any, Any, str]]:
    """Name, type, default and help of every setting that is left to the model."""
    known = every_setting()
    return {
        name: (known[name].type, known[name].default, known[name].metadata["help"])
        for name in _beside(option_fields(), known)
    }


def _beside(fields: Iterable[str], settings: Iterable[str]) -> list[str]:
    """The settings that are no fields of the recipe by themselves."""
    return [name for name in settings if name not in set(fields)]


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"recipe: {name} must be {least} or more, got {value}")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(repr, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
