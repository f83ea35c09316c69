"""The card of a trained model: what it is, what it was trained on, how well it answers."""

from pathlib import Path

import torch

from ptrnet import model_files
from ptrnet.decoding import Greedy
from ptrnet.evaluation import evaluate
from ptrnet.files import atomic_path
from ptrnet.progress import track
from ptrnet.solver import Solver
from ptrnet.training.recipe import Recipe
from ptrnet.types import Example

ANSWERS = {
    "permutation": "orders of all elements",
    "subset": "subsets of the elements, each at most once",
    "free": "sequences of elements, in which one may stand again",
}


def write_card(
    folder: Path, saved: model_files.Saved, recipe: Recipe, known: list[Example]
) -> None:
    """Writes `README.md` into a model's folder, with the scores on `known` examples."""
    threads = torch.get_num_threads()
    solver = Solver(*saved)
    scores = {}
    for name, constrained in (("free", False), ("constrained", True)):
        answers = solver.solve_examples(known, Greedy(), constrained=constrained)
        scores[name] = evaluate(solver, known, track(answers, f"measuring, {name}", len(known)))
    lines = ["| metric | free | under the constraint |", "|---|---|---|"]
    for metric in scores["free"]:
        cells = " | ".join(found[metric].text(4) for found in scores.values())
        lines.append(f"| {metric} | {cells} |")
    weights = sum(p.numel() for p in saved.model.parameters())
    source = (
        "their own file" if recipe.valid else "the training's file, which the training left out"
    )
    text = f"""# {folder.resolve().name}

A {recipe.model} for {_subject(saved)}.

- Network: {weights:,} weights, encoder and decoder of {recipe.hidden_size} units
- Trained on: {recipe.data or "fresh instances"}, instances of {_sizes(recipe.n)} elements
- Training: seed {recipe.seed}, batches of {recipe.batch_size}, weights of step \
{saved.trained["steps"]:,} of {recipe.steps:,} at most; the rest is in `recipe.toml`
- With: PyTorch {torch.__version__.partition("+")[0]}, {threads} threads

## Scores

Of {len(known):,} examples of {source}; greedy decoding, with 95% intervals where there are any.

{chr(10).join(lines)}

## Use

    ptrnet solve --model {folder.name} FILE
    ptrnet evaluate --model {folder.name} FILE

## Limits

It answers what is like its examples: instances of other sizes, or with features in other ranges,
are answered worse, and no error says so.
"""
    with atomic_path(folder / model_files.CARD) as path:
        path.write_text(text, encoding="utf-8")


def _subject(saved: model_files.Saved) -> str:
    kind = getattr(saved.task, "constraint", None)
    if kind is None:
        return f"the task `{saved.task.name}`"
    d = saved.task.num_features
    return f"instances of {d} feature{'s' * (d > 1)}; answers are {ANSWERS[kind]}"


def _sizes(n: str) -> str:
    return n if len(n) < 80 else f"{n[:80]}..."
