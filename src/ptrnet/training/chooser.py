"""Fit the model `chooser` to examples, and save it."""

import sys
from pathlib import Path

from ptrnet import model_folder, models
from ptrnet.data.streams import DatasetStream
from ptrnet.errors import InputError
from ptrnet.models.chooser import Chooser
from ptrnet.training import run_folder
from ptrnet.training.examples import open_stream, open_valid
from ptrnet.training.mixture import Shares
from ptrnet.training.own_data import FEW_ELEMENTS, MAX_ROWS
from ptrnet.training.recipe import Recipe
from ptrnet.training.reports import Hooks
from ptrnet.training.run_card import write_card
from ptrnet.training.spaces import fit_spaces
from ptrnet.types import Dataset


def train_chooser(
    recipe: Recipe, output: Path, resume: bool, data: Dataset | None, hooks: Hooks
) -> model_folder.Saved:
    """Fit a chooser. The arguments are those of `ptrnet.training.run.train`.

    Raises:
        InputError: `output` holds another run, or an argument has no effect. Nothing was written.
    """
    if resume:
        raise InputError(
            f"resume: model {models.CHOOSER} is fitted at once, so no run is unfinished"
        )
    if hooks.callbacks or hooks.loggers:
        raise InputError(
            f"callbacks and loggers follow steps, which model {models.CHOOSER} has not"
        )
    run_folder.check_unused(output)
    stream = open_stream(recipe, data=data)
    parts = open_valid(recipe, stream)
    assert isinstance(stream, DatasetStream)
    learned, task = stream.learned_by(0, len(stream.examples)), recipe.task
    spaces = fit_spaces(learned, task, MAX_ROWS)
    settings = {"spaces": len(spaces), "answer": task.facts.answer}
    facts = task.facts
    model = models.build(recipe.model, facts.num_features, facts.num_specials, **settings).eval()
    assert isinstance(model, Chooser)
    model.spaces = spaces
    saved = model_folder.Saved(model, task, {"n": str(recipe.data.n)})
    run_folder.create(output)
    with run_folder.locked(output):
        run_folder.write_recipe(output, recipe)
        model_folder.save(output, saved)
        write_card(output, saved, recipe, parts, Shares())
    if len(learned.elements) > FEW_ELEMENTS:
        print(
            f"{len(learned.elements):,} elements: model {models.CHOOSER} is for fewer than "
            f"{FEW_ELEMENTS:,}; from so many a model that ptrnet trains by default learns more",
            file=sys.stderr,
        )
    return saved
