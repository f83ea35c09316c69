"""A model on disk: `config.json` says what to build, and `model.safetensors` holds the weights.

A card, `README.md`, describes the model to people and to the Hugging Face hub, in Markdown.

No code of the folder is executed. Every key, tensor name, shape and value is checked before a model
is returned, and a checksum covers both files.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes

from ptrnet import models, tasks
from ptrnet.errors import InputError, ModelError, short
from ptrnet.files import atomic_path, checksum, exists, named_failure
from ptrnet.models.base import PointerModel, num_weights
from ptrnet.tasks.base import Task

if TYPE_CHECKING:
    from ptrnet.metrics import Measure

FORMAT = 1
CONFIG, TENSORS, CARD = "config.json", "model.safetensors", "README.md"
RECIPE = "recipe.toml"  # in the folder of a training, which becomes a model's folder
# The key of CONFIG with a checksum of its other keys and of TENSORS: safetensors has no checksums.
# Users who edit one of the two files have to remove this key.
_CHECKSUM = "sha256"
_KEYS = {
    "format": int,
    "model": str,
    "model_settings": dict,
    "task": str,
    "task_settings": dict,
    "trained": dict,
}
_OPTIONAL_KEYS = {_CHECKSUM: str}
_FENCE = "---\n"  # the line before and after the facts that the hub reads
_FACTS = ("n", "steps", "batch_size", "seed")  # keys of `Saved.trained` in a card
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Saved(NamedTuple):
    """The content of a model's folder."""

    model: PointerModel
    task: Task
    trained: dict[str, Any]  # facts about the training: its sizes, steps, seed


def save(folder: Path, saved: Saved, dtype: torch.dtype = torch.float32) -> None:
    """Write the configuration and the weights. If the folder is missing, make it.

    Raises:
        InputError: a value in a tensor is not finite, or the folder cannot be made. In both cases
            no file is written.
    """
    tensors = {
        k: (v.to(dtype) if v.is_floating_point() else v).contiguous()
        for k, v in saved.model.state_dict().items()
    }
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise InputError(f"{folder}: not saved: tensor {name!r} has values that are not finite")
    config = {
        "format": FORMAT,
        "model": registered_name(saved.model),
        "model_settings": saved.model.settings(),
        "task": saved.task.name,
        "task_settings": tasks.settings_of(saved.task),
        "trained": saved.trained,
    }
    with named_failure(f"{folder}: cannot be made"):
        folder.mkdir(parents=True, exist_ok=True)
    content = to_bytes(tensors, metadata={"format": "pt"})
    config[_CHECKSUM] = _checksum(config, content)
    # First write both files under temporary names, because either file is useless alone. Then
    # rename them, the configuration last: a folder with a configuration counts as a model.
    with atomic_path(folder / CONFIG) as config_path, atomic_path(folder / TENSORS) as path:
        path.write_bytes(content)
        config_path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def is_there(folder: Path) -> bool:
    """Whether a folder has a model's configuration."""
    return (folder / CONFIG).exists()


def load(folder: Path) -> Saved:
    """Return the model of a folder, in float32 and in evaluation mode.

    Raises:
        ModelError: the folder has no model, a file is damaged, or a key is unknown or missing. Or
            the weights belong to another configuration. Or a tensor is missing, unknown, of another
            shape or not finite.
    """
    config, path = _read_config(folder / CONFIG), folder / TENSORS
    with named_failure(f"{path}: cannot be read", ModelError):
        content = path.read_bytes()
    if _CHECKSUM in config and config[_CHECKSUM] != _checksum(config, content):
        raise ModelError(
            f"{folder}: {CONFIG} or {TENSORS} is damaged, was edited, or belongs to another model; "
            f'to use them nevertheless, remove "{_CHECKSUM}" from {CONFIG}'
        )
    try:
        tasks.kind(config["task"]), models.kind(config["model"])
    except InputError as error:
        raise ModelError(
            f"{folder / CONFIG}: {error}; name its plug-in by --plugins FILE or PTRNET_PLUGINS"
        ) from None
    try:
        task = tasks.get(config["task"], **config["task_settings"])
        settings = models.settings_of(config["model"], **config["model_settings"])
        with torch.device("meta"):  # allocate no memory: the weights come from the file
            model = models.for_task(config["model"], task, settings)
    except InputError as error:
        raise ModelError(f"{folder / CONFIG}: {error}") from None
    try:
        tensors = from_bytes(content)
    except SafetensorError as error:
        raise ModelError(f"{path}: not a whole safetensors file: {error}") from None
    _check_tensors(path, tensors, model)
    tensors = {k: v.float() if v.is_floating_point() else v for k, v in tensors.items()}
    model.load_state_dict(tensors, assign=True)
    for network in model.networks():
        if reason := network.weights_error():
            raise ModelError(f"{path}: {reason}")
    return Saved(model.eval(), task, config["trained"])


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        advice = ""
        if exists(path.with_name(RECIPE)):
            advice = (
                f"; to go on with the training, run: ptrnet train --output {path.parent} --resume"
            )
        raise ModelError(f"{path}: no such file, so no model is there{advice}") from None
    except NotADirectoryError:
        raise ModelError(f"{path.parent}: expected a model's folder, got a file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a model's configuration: {error}") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelError(f'{path}: expected an object with "format": {FORMAT}')
    for key in sorted(_KEYS.keys() ^ (config.keys() - _OPTIONAL_KEYS.keys())):
        state = "missing" if key in _KEYS else "unknown"
        raise ModelError(f"{path}: key {short(key)} is {state}")
    for key, value in config.items():
        kind = {**_KEYS, **_OPTIONAL_KEYS}[key]
        if not isinstance(value, kind):
            raise ModelError(f"{path}: key {key!r} must be {kind.__name__}, got {short(value)}")
    scores = config["trained"].get("scores", [])
    if not isinstance(scores, list) or not all(map(_is_score, scores)):
        raise ModelError(f"{path}: scores: expected a list of measures, got {short(scores)}")
    return config


def _is_score(score: Any) -> bool:
    """Whether a value in the configuration has the keys and types of a score."""
    if not isinstance(score, dict) or not {"n", "metric", "count"} <= score.keys():
        return False
    # None is allowed, but a missing key is not. So the default is a text, which is refused.
    values = (score.get(key, "") for key in ("value", "low", "high"))
    return isinstance(score["count"], int) and all(
        value is None or isinstance(value, int | float) for value in values
    )


def _checksum(config: Mapping[str, Any], content: bytes) -> str:
    """Return the checksum of a configuration and of the content of TENSORS."""
    others = {key: config[key] for key in config if key != _CHECKSUM}
    return checksum(json.dumps(others, sort_keys=True).encode() + content)


def _check_tensors(path: Path, tensors: dict[str, torch.Tensor], model: PointerModel) -> None:
    expected = model.state_dict()
    for name in sorted(set(expected) ^ set(tensors)):
        state = "is missing" if name in expected else "is not one of this model's"
        raise ModelError(f"{path}: tensor {short(name)} {state}")
    for name, tensor in sorted(tensors.items()):  # they were read in random order
        if tensor.shape != expected[name].shape:
            raise ModelError(
                f"{path}: tensor {name!r} must be {tuple(expected[name].shape)}, "
                f"got {tuple(tensor.shape)}"
            )
        is_float = expected[name].is_floating_point()
        dtypes = _DTYPES if is_float else (expected[name].dtype,)
        if tensor.dtype not in dtypes:
            known, got = (", ".join(map(str, kinds)) for kinds in (dtypes, [tensor.dtype]))
            raise ModelError(f"{path}: tensor {name!r} must be of {known}, got {got}")
        if not tensor.float().isfinite().all():
            raise ModelError(f"{path}: tensor {name!r} has a value that is not finite")


def registered_name(model: PointerModel) -> str:
    """Return the name of a model's architecture, one of the names that `--model` accepts.

    Raises:
        ModelError: the model's class is not registered, so a saved model could not be loaded.
    """
    kind = type(model.networks()[0])
    own = kind.__module__.rpartition(".")[2].replace("_", "-")
    # First try the name of the class's module, to avoid importing other networks.
    for name in sorted([*models.names(), *models.UNLISTED], key=lambda name: name != own):
        known = models.kind(name)
        # Compare names, because a cell of a notebook may have defined the class again.
        if (known.__module__, known.__qualname__) == (kind.__module__, kind.__qualname__):
            return name
    cls = kind.__name__
    raise ModelError(f"{cls} has no name: ptrnet.models.register('my-net', {cls}) gives it one")


def read_card(folder: Path) -> str:
    """Return the card in a model's folder, or an empty text if there is no readable card."""
    try:
        return (folder / CARD).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def write_card(folder: Path, text: str) -> None:
    """Write the card of a model's folder."""
    with atomic_path(folder / CARD) as path:
        path.write_text(text, encoding="utf-8")


def basic_card(name: str, saved: Saved) -> str:
    """Return a card with the facts in a model's files, for a model that has no card."""
    count = num_weights(saved.model)
    facts = [f"Network: `{registered_name(saved.model)}`, {count:,} weights"]
    if saved.task.facts.schema:
        facts.append(f"Reads: {saved.task.facts.schema.describe()}")
    facts += [
        f"Trained with {key} = {saved.trained[key]}" for key in _FACTS if key in saved.trained
    ]
    scores = [
        f"- n = {n}: {metric} {measure.text(1, 100)} percent, of {measure.count:,} instances"
        for n, metric, measure in _scores(saved.trained)
    ]
    sections = {
        "Scores": "\n".join(scores),
        "Use": f'    import ptrnet\n    answers = ptrnet.load("{name}").solve(instances)',
    }
    summary = f"A pointer network for the task `{saved.task.name}`, by ptrnet."
    return compose_card(name, summary, facts, sections)


def compose_card(
    title: str, summary: str, facts: Iterable[str], sections: Mapping[str, str]
) -> str:
    """Return a card as Markdown: a title, a paragraph, a list of facts, and sections by heading.

    Sections without text are left out.
    """
    listed = "\n".join(f"- {fact}" for fact in facts)
    written = [f"## {heading}\n\n{text}" for heading, text in sections.items() if text]
    return "\n\n".join([f"# {title}", summary, listed, *written]) + "\n"


def with_front_matter(card: str, name: str, saved: Saved, license: str | None = None) -> str:
    """Return a card that begins with YAML front matter: the facts that the hub reads.

    A card that already begins with front matter keeps its facts. If `license` is given, only the
    license in these facts is replaced.
    """
    if card.startswith(_FENCE):
        return card if license is None else _with_license(card, license)
    from huggingface_hub import EvalResult, ModelCardData

    is_own = saved.task.name == tasks.CUSTOM
    results = [
        EvalResult(
            task_type="other",
            task_name=saved.task.name,
            dataset_type="own-examples" if is_own else "synthetic",
            dataset_config=f"n = {n}",  # distinguishes the results
            dataset_name=f"{'held-out examples' if is_own else 'instances'} of {n} elements",
            metric_type=metric,
            metric_value=round(measure.value, 6),
        )
        for n, metric, measure in _scores(saved.trained)
        if measure.value is not None
    ]
    data = ModelCardData(
        license=license,
        library_name="ptrnet",
        tags=["pointer-network", saved.task.name, registered_name(saved.model)],
        model_name=name if results else None,
        eval_results=results or None,
    )
    return f"{_FENCE}{data.to_yaml()}\n{_FENCE}\n{card}"


def _with_license(card: str, license: str) -> str:
    """Replace the license in the front matter of a card. Return the new card."""
    from huggingface_hub import ModelCard

    known = ModelCard(card, ignore_metadata_errors=True)
    known.data["license"] = license
    return str(known)


def _scores(trained: dict[str, Any]) -> Iterator[tuple[Any, str, "Measure"]]:
    """Yield the size n, the metric and the measure of each score in a model's configuration."""
    from ptrnet.metrics import Measure

    for score in trained.get("scores", []):
        yield score["n"], str(score["metric"]), Measure.from_dict(score)
