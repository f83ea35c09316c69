"""Write the card (`README.md`) of a trained model: the network, the training and the scores."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from ptrnet import model_folder, models
from ptrnet.decoding import Greedy
from ptrnet.errors import OutOfDistributionWarning, listed
from ptrnet.evaluation import Evaluation
from ptrnet.metrics import Measure
from ptrnet.models.base import num_weights
from ptrnet.solver import Solver
from ptrnet.solver.scoring import scored
from ptrnet.training import own_data
from ptrnet.training.mixture import Shares
from ptrnet.training.recipe import Recipe
from ptrnet.types import Dataset

ANSWERS = {
    "permutation": "orders of all elements",
    "subset": "subsets of the elements, each at most once",
    "sequence": "sequences of elements, which may be repeated",
    "set": "sets of elements, without an order",
    "choice": "one element",
    "grades": "orders of all elements by their grades; equal grades may come in any order",
}
LIMITS = """\
The model is made for instances like its examples. Its answers get worse if instances have other
sizes, or features in other ranges. ptrnet prints a warning for such instances."""


USAGE = """\
    ptrnet solve --model MODEL FILE
    ptrnet evaluate --model MODEL FILE

MODEL is the folder of this file, or its id on the hub."""
LISTED = ("accuracy", "gap")  # metrics that lists of models show, and the main one of own kinds


class Card(NamedTuple):
    """Parts of a model's `README.md`."""

    title: str
    summary: str
    facts: Sequence[str]  # about the network and its training; each becomes a list item
    scores: str  # says what the scores were measured on
    table: str
    limits: str
    usage: str = ""  # Markdown
    coefficients: str = ""  # the table of a conditional logit

    def text(self) -> str:
        """Return the card as Markdown."""
        sections = {
            "Coefficients": self.coefficients,
            "Scores": f"{self.scores}\n\n{self.table}",
            "Use": self.usage,
            "Limits": self.limits,
        }
        return model_folder.compose_card(self.title, self.summary, self.facts, sections)

    def write(self, folder: Path, saved: model_folder.Saved) -> None:
        """Write the card to a model's folder, with front matter for the hub."""
        model_folder.write_card(
            folder, model_folder.with_front_matter(self.text(), self.title, saved)
        )


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format rows of cells as a Markdown table."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def write_card(
    folder: Path,
    saved: model_folder.Saved,
    recipe: Recipe,
    parts: Sequence[Dataset],
    shares: Shares,
) -> None:
    """Write the card of a run's model, with scores on examples that were not used for training.

    Also save the scores of the metrics LISTED to the model's configuration, where lists of models
    read them.

    Args:
        saved: the model. The scores are added to `saved.trained`.
        parts: test examples with answers. A single part is for all networks. If there are several
            parts, part k is for network k of an ensemble, which did not learn from these examples.
            Without examples the card has no scores.
    """
    count = sum(map(len, parts))
    scores, table = "Not measured: the training kept no examples with answers for this.", ""
    if count:
        scores = f"Measured on {count:,} {_source(recipe)}. Greedy decoding, 95% intervals."
        scores += _split(recipe, parts)
        if len(parts) > 1:
            scores += (
                " Each example is answered by the one network that did not learn from it. The"
                " scores of the whole ensemble should be better."
            )
        (free, _), (constrained, telling) = _measures(saved, parts)
        rows = [[metric, free[metric].text(4), constrained[metric].text(4)] for metric in telling]
        table = markdown_table(["metric", "unconstrained", "constrained"], rows)
        saved.trained["scores"] = [
            {"n": str(recipe.data.n), "metric": metric, **constrained[metric].to_dict()}
            for metric in dict.fromkeys([*LISTED, saved.task.facts.metric])
            if metric in telling
        ]
        model_folder.save(folder, saved)
    Card(
        title=folder.resolve().name,
        summary=f"A {recipe.model} for {_subject(saved)}.",
        facts=_facts(saved, recipe, shares),
        scores=scores,
        table=table,
        usage=USAGE,
        coefficients=_coefficients(saved) if recipe.model == models.LOGIT else "",
        limits=LIMITS,
    ).write(folder, saved)


def _facts(saved: model_folder.Saved, recipe: Recipe, shares: Shares) -> list[str]:
    """Return the facts about the model and its training."""
    sizes = str(recipe.data.n)
    in_steps, schema = recipe.model not in models.AT_ONCE, saved.task.facts.schema
    facts = [
        f"Trained on: {Path(recipe.data.data).name or 'random instances'}, with "
        f"{sizes if len(sizes) < 80 else f'{sizes[:80]}...'} elements each"
    ]
    if in_steps:
        facts.insert(
            0,
            f"Network: {num_weights(saved.model):,} weights, encoder and decoder with "
            f"{recipe.network.hidden_size} units",
        )
    if schema:
        facts.append(f"Reads: {schema.describe()}")
    if recipe.task.facts.kind:
        facts.append(f"Trained: {own_data.describe(recipe)}")
    if effects := saved.trained.get("positions"):
        shown = listed(f"{effect:+.2f} at {level}" for level, effect in effects.items())
        facts.append(
            f"Left out of answers: what the position `{recipe.columns.position}` adds to the score "
            f"of an element, {shown}"
        )
    if shares != Shares():
        facts.append(f"Mixture: {shares}")
    if in_steps:
        facts.append(
            f"Training: seed {recipe.run.seed}, batches of {recipe.data.batch_size}, weights of "
            f"step {saved.trained['steps']:,} of at most {recipe.run.steps:,}; see also "
            "`recipe.toml`"
        )
    software = f"PyTorch {torch.__version__.partition('+')[0]}"
    return [*facts, f"Software: {software}, {torch.get_num_threads()} threads"]


def _coefficients(saved: model_folder.Saved) -> str:
    """Return the table of a conditional logit, as Markdown."""
    from ptrnet.solver.coefficients import Coefficients

    table = Coefficients.from_dict(saved.trained["coefficients"])
    return f"```text\n{table}\n```"


def _source(recipe: Recipe) -> str:
    """Describe the examples that the scores were measured on."""
    if recipe.data.valid:
        return "examples of a separate file"
    if recipe.data.data:
        return "examples that were held out from the training's file"
    return "random examples that were not used for training"


def _split(recipe: Recipe, parts: Sequence[Dataset]) -> str:
    """Say by what the examples were split from those of the training."""
    groups = Dataset.join(parts).groups
    if groups is not None:
        field = recipe.columns.group
        name = f" (`{field}`)" if field else ""
        return (
            f" The examples were split by group{name}: they belong to {len(np.unique(groups)):,} "
            "groups, of which the training saw no example. Each interval takes a group as one "
            "observation."
        )
    if recipe.task.facts.kind and not recipe.data.valid:
        return (
            " The examples were split by set, not by group. If a person has several sets, these "
            "are scores for persons that the training saw."
        )
    return ""


def _measures(
    saved: model_folder.Saved, parts: Sequence[Dataset]
) -> list[tuple[dict[str, Measure], list[str]]]:
    """Measure greedy decoding, first without and then with the task's constraint.

    Also return the metrics that a text for people shows.
    """
    networks = [saved.model] if len(parts) == 1 else saved.model.networks()
    whole = Solver(saved.model, saved.task, saved.trained)
    whole.trained_range.warn_of(Dataset.join(parts))
    solvers = [Solver(network, saved.task, saved.trained) for network in networks]
    measures = []
    with warnings.catch_warnings():
        # Each network would warn of its own part once more.
        warnings.simplefilter("ignore", OutOfDistributionWarning)
        for name, constrained in (("unconstrained", False), ("constrained", True)):
            parts_scored = (
                _scored(solver, part, constrained, f"measuring, {name}")
                for solver, part in zip(solvers, parts, strict=True)
            )
            has_weights = any(part.weights is not None for part in parts)
            evaluation = Evaluation(saved.task, parts_scored, has_weights=has_weights)
            measures.append((evaluation.measures(), evaluation.telling_metrics()))
    return measures


def _scored(solver: Solver, data: Dataset, constrained: bool, activity: str) -> Dataset:
    """Answer examples greedily. Return the examples, with the scores of the answers in `extra`."""
    answered = solver.predict(
        data, Greedy(), constrained=constrained, improve=False, activity=activity
    )
    return scored(solver.model, solver.task, data, answered)


def _subject(saved: model_folder.Saved) -> str:
    kind = saved.task.facts.kind
    if not kind:
        return f"the task `{saved.task.name}`"
    d = saved.task.facts.num_features
    return f"instances of {d} feature{'s' * (d > 1)}; answers are {ANSWERS[kind]}"
