"""The trainings behind the rows of a paper's table.

Each recipe has a folder, so rows with the same recipe share a training.
"""

import hashlib
import json
from pathlib import Path

from ptrnet import model_folder, models, weights
from ptrnet.solver import Solver
from ptrnet.training import checkpoint, run_folder
from ptrnet.training.recipe import Recipe
from ptrnet_lab.reproduce.tables import Line


def folder_of(recipe: Recipe, runs: Path) -> Path:
    """Return the folder of a recipe's training: a readable name and a digest of its settings.

    The digest covers only settings that differ from their defaults. So the name stays the same if a
    later version adds settings.
    """
    task, hidden_size = recipe.task.name, recipe.network.hidden_size
    defaults = Recipe.from_table(task=task, model=recipe.model, n=recipe.data.n).table()
    differing = {k: v for k, v in recipe.table().items() if v != defaults.get(k)}
    digest = hashlib.sha256(json.dumps(differing, sort_keys=True).encode()).hexdigest()[:8]
    return runs / f"{task}-{recipe.model}-n{recipe.data.n}-{hidden_size}-{digest}"


def is_trained(folder: Path) -> bool:
    """Whether the training in a folder has ended. A training writes its card last."""
    return (folder / model_folder.CARD).exists()


def steps_done(folder: Path) -> int:
    """Return the number of steps that the unfinished training in a folder has done."""
    begun = checkpoint.read_last(folder)
    return int(begun.content["global_step"]) if begun else 0


def solver_of(line: Line, recipe: Recipe | None, runs: Path) -> Solver:
    """Return the solver of a line: the shipped model, or the model that the recipe trains.

    If the recipe's folder has no model yet, train the model. Resume a training that was stopped.
    Raises InputError if the folder belongs to another training, or its checkpoints are damaged.
    """
    if recipe is None:
        return weights.load(line.weights)
    from ptrnet.training.run import train

    folder = folder_of(recipe, runs)
    if is_trained(folder):
        solver = Solver(*model_folder.load(folder))
    else:
        folder.parent.mkdir(parents=True, exist_ok=True)
        solver = Solver(*train(recipe, folder, resume=(folder / run_folder.RECIPE).exists()))
    return _as_model(line.decoding.model, solver) if line.decoding.model else solver


def _as_model(name: str, solver: Solver) -> Solver:
    """Return a solver whose model has another architecture, `name`, and the same weights."""
    trained, task = solver.model, solver.task
    model = models.build(
        name, task.facts.num_features, task.facts.num_specials, **trained.settings()
    )
    model.load_state_dict(trained.state_dict())
    return Solver(model.eval(), task, solver.trained)
