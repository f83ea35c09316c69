"""The card in a model's folder: Markdown that describes the model to people and to the hub."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptrnet import tasks
from ptrnet.files import atomic_path
from ptrnet.models.base import num_weights
from ptrnet.pretrained.model_folder import CARD, Saved, registered_name

if TYPE_CHECKING:
    from ptrnet.metrics.interval import Measure

_FENCE = "---\n"  # the line before and after the facts that the hub reads
_FACTS = ("n", "steps", "batch_size", "seed")  # keys of `Saved.trained` in a card


def read(folder: Path) -> str:
    """Return the card in a model's folder, or an empty text if there is no readable card."""
    try:
        return (folder / CARD).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def write(folder: Path, text: str) -> None:
    """Write the card of a model's folder."""
    with atomic_path(folder / CARD) as path:
        path.write_text(text, encoding="utf-8")


def basic(name: str, saved: Saved) -> str:
    """Return a card with the facts in a model's files, for a model that has no card."""
    count = num_weights(saved.model)
    facts = [f"Network: `{registered_name(saved.model)}`, {count:,} weights"]
    if saved.task.schema:
        facts.append(f"Reads: {saved.task.schema.describe()}")
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
    return compose(name, summary, facts, sections)


def compose(title: str, summary: str, facts: Iterable[str], sections: Mapping[str, str]) -> str:
    """Return a card as Markdown.

    Args:
        title: the title.
        summary: one paragraph.
        facts: facts about the network and its training, which become the items of a list.
        sections: the text under each heading, in order. Sections without text are left out.
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
    from ptrnet.metrics.interval import Measure

    for score in trained.get("scores", []):
        yield score["n"], str(score["metric"]), Measure.from_dict(score)
