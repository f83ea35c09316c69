"""A model on disk: `config.json` says what to build, `model.safetensors` holds its numbers.

Nothing is executed and nothing is trusted: every key, tensor name, shape and value is checked
before a model is handed out, and the numbers as a whole by their checksum.
"""

import json
import stat
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from ptrnet import models, tasks
from ptrnet.errors import InputError, ModelError, short, unknown
from ptrnet.files import atomic_path, checksum, json_checksum
from ptrnet.models.base import PointerModel
from ptrnet.settings import to_mapping
from ptrnet.tasks.base import Task

FORMAT = 1
CONFIG, TENSORS, CARD = "config.json", "model.safetensors", "README.md"
_KEYS = {"format", "model", "model_settings", "task", "task_settings", "trained"}
# Of TENSORS, and of the other keys of CONFIG. A user who edits one of these removes its checksum.
_CHECKSUM, _CONFIG_CHECKSUM = "sha256", "config_sha256"
_MAX_CONFIG_BYTES = 1_000_000
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Saved(NamedTuple):
    """The content of a model's folder."""

    model: PointerModel
    task: Task
    trained: dict[str, Any]  # facts about the training: its sizes, steps, seed


def save(folder: Path, saved: Saved, dtype: torch.dtype = torch.float32) -> None:
    """Writes the two files; the folder is made where it is missing.

    Raises:
        InputError: a number of the model is not finite, or the folder cannot be made; nothing was
            written.
    """
    tensors = {k: v.to(dtype).contiguous() for k, v in saved.model.state_dict().items()}
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise InputError(f"{folder}: not saved: tensor {name!r} holds no finite numbers")
    config = {
        "format": FORMAT,
        "model": registered_name(saved.model),
        "model_settings": saved.model.settings(),
        "task": saved.task.name,
        "task_settings": to_mapping(saved.task),
        "trained": saved.trained,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    content = to_bytes(tensors, metadata={"format": "pt"})
    config[_CHECKSUM] = checksum(content)
    config[_CONFIG_CHECKSUM] = json_checksum(config)
    # Both are written before either is renamed, as each is of no use without the other; the
    # configuration, by which a model is known to be there, is renamed last.
    with atomic_path(folder / CONFIG) as config_path, atomic_path(folder / TENSORS) as path:
        path.write_bytes(content)
        config_path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def is_there(folder: Path) -> bool:
    """Whether a folder has a model's configuration."""
    return (folder / CONFIG).exists()


def load(folder: Path) -> Saved:
    """The model in a folder, in float32, ready to answer.

    Raises:
        ModelError: no model there; a key unknown or missing; a file that is cut, or not the one
            that the configuration was written with; a tensor that is missing, too many,
            misshapen or not finite.
    """
    config = _read_config(folder / CONFIG)
    for kind, name, known in (
        ("task", config["task"], [*tasks.names(), tasks.CUSTOM]),
        ("model", config["model"], models.names()),
    ):
        if name not in known:
            raise ModelError(
                f"{folder / CONFIG}: {unknown(kind, name, known)}; that of a plug-in is known by "
                "--plugins FILE or PTRNET_PLUGINS"
            )
    try:
        task = tasks.get(config["task"], **config["task_settings"])
        with torch.device("meta"):  # shapes alone: memory is taken when the file has proved them
            model = models.build(
                config["model"], task.num_features, task.num_specials, **config["model_settings"]
            )
    except InputError as error:
        raise ModelError(f"{folder / CONFIG}: {error}") from None
    path = folder / TENSORS
    _check_content(path, config.get(_CHECKSUM))
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path}: not a whole safetensors file: {error}") from None
    _check_tensors(path, tensors, model)
    model.load_state_dict({k: v.float() for k, v in tensors.items()}, assign=True)
    return Saved(model.eval(), task, config["trained"])


def _read_config(path: Path) -> dict[str, Any]:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{path}: expected a file")
        if status.st_size > _MAX_CONFIG_BYTES:
            raise ModelError(f"{path}: expected at most {_MAX_CONFIG_BYTES} bytes")
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file, so no model is there") from None
    except NotADirectoryError:
        raise ModelError(f"{path.parent}: expected a model's folder, got a file") from None
    except ModelError:  # a ValueError, too
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a model's configuration: {error}") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelError(f'{path}: expected an object with "format": {FORMAT}')
    for key in sorted(_KEYS ^ (set(config) - {_CHECKSUM, _CONFIG_CHECKSUM})):
        state = "missing" if key in _KEYS else "unknown"
        raise ModelError(f"{path}: key {short(key)} is {state}")
    for key, kind in (
        ("model", str),
        ("task", str),
        ("model_settings", dict),
        ("task_settings", dict),
        ("trained", dict),
        (_CHECKSUM, str),
        (_CONFIG_CHECKSUM, str),
    ):
        if key in config and not isinstance(config[key], kind):
            raise ModelError(
                f"{path}: key {key!r} must be {kind.__name__}, got {short(config[key])}"
            )
    others = {key: config[key] for key in config if key != _CONFIG_CHECKSUM}
    if config.get(_CONFIG_CHECKSUM, "") not in ("", json_checksum(others)):
        raise ModelError(
            f"{path}: not as it was written: damaged, or edited; to use it nevertheless, remove "
            f'"{_CONFIG_CHECKSUM}" from it'
        )
    _check_scores(config["trained"].get("scores", []), path)
    return config


def _check_scores(scores: Any, path: Path) -> None:
    """Refuses scores that cannot be shown."""
    if not isinstance(scores, list) or not all(map(_is_score, scores)):
        raise ModelError(f"{path}: scores: expected a list of measures, got {short(scores)}")


def _is_score(score: Any) -> bool:
    if not isinstance(score, dict) or not {"n", "metric", "count"} <= score.keys():
        return False
    values = (score.get(key, "") for key in ("value", "low", "high"))
    return isinstance(score["count"], int) and all(
        value is None or isinstance(value, int | float) for value in values
    )


def _check_content(path: Path, expected: str | None) -> None:
    """Refuses a file whose content has another checksum than expected; None: nothing expected."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError(f"{path}: expected a file")
        if expected is not None and checksum(path) != expected:
            raise ModelError(
                f"{path}: not the file that {CONFIG} has the checksum of: damaged, or another "
                f'one; to use it nevertheless, remove "{_CHECKSUM}" from {CONFIG}'
            )
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None


def _check_tensors(path: Path, tensors: dict[str, torch.Tensor], model: PointerModel) -> None:
    expected = model.state_dict()
    for name in sorted(set(expected) ^ set(tensors)):
        state = "is missing" if name in expected else "is not one of this model's"
        raise ModelError(f"{path}: tensor {short(name)} {state}")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            raise ModelError(
                f"{path}: tensor {name!r} must be {tuple(expected[name].shape)}, "
                f"got {tuple(tensor.shape)}"
            )
        if tensor.dtype not in _DTYPES or not tensor.float().isfinite().all():
            raise ModelError(f"{path}: tensor {name!r} holds a value that is no finite number")


def registered_name(model: PointerModel) -> str:
    """The name of a model's architecture, as `ptrnet train --model` takes it.

    Raises:
        ModelError: it has none, so the files could not be loaded again.
    """
    kind = type(model)
    for name in models.names():
        known = models.kind(name)
        # A notebook's cell may have defined the class anew since.
        if (known.__module__, known.__qualname__) == (kind.__module__, kind.__qualname__):
            return name
    cls = kind.__name__
    raise ModelError(f"{cls} has no name: ptrnet.models.register('my-net', {cls}) gives it one")
