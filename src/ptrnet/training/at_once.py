"""Train without steps: `conditional-logit` and `chooser` are fitted to all examples at once."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ptrnet import model_folder, models
from ptrnet.data.streams import DatasetStream
from ptrnet.errors import InputError
from ptrnet.files import atomic_path
from ptrnet.models.base import PointerModel
from ptrnet.models.chooser import Chooser
from ptrnet.models.conditional_logit import ConditionalLogit
from ptrnet.training import run_folder
from ptrnet.training.examples import open_stream, open_valid
from ptrnet.training.mixture import Shares
from ptrnet.training.own_data import FEW_ELEMENTS, MAX_ROWS
from ptrnet.training.positions import features_read, without_positions
from ptrnet.training.recipe import Recipe
from ptrnet.training.reports import Hooks
from ptrnet.training.run_card import write_card
from ptrnet.types import Dataset


class Fitted(NamedTuple):
    """A fitted model, its coefficients if it has some, and a note that the user reads."""

    model: PointerModel
    coefficients: Mapping[str, Any] = {}  # see `ptrnet.solver.coefficients.Coefficients`
    note: str = ""


def train_at_once(
    recipe: Recipe, output: Path, resume: bool, data: Dataset | None, hooks: Hooks
) -> model_folder.Saved:
    """Fit a model. Save it, the recipe, the card and the facts.

    Nothing is written before the fit has ended, so there is nothing to resume. The arguments are
    those of `ptrnet.training.run.train`.

    Raises:
        InputError: `output` holds another run, an argument has no effect on such a model, or the
            model cannot be fitted. Nothing was written.
    """
    name = recipe.model
    if resume:
        raise InputError(f"resume: model {name} is fitted at once, so no run is unfinished")
    if hooks.callbacks or hooks.loggers:
        raise InputError(f"callbacks and loggers follow steps, which model {name} has not")
    run_folder.check_unused(output)
    stream = open_stream(recipe, data=data)
    parts = open_valid(recipe, stream)
    assert isinstance(stream, DatasetStream)
    fitted = FITS[name](stream.learned_by(0, len(stream.examples)), recipe)
    facts: dict[str, Any] = {"n": str(recipe.data.n)}
    if fitted.coefficients:
        facts["coefficients"] = fitted.coefficients
    saved = model_folder.Saved(fitted.model.float().eval(), recipe.task, facts)
    saved = without_positions(saved, recipe)
    run_folder.create(output)
    with run_folder.locked(output):
        run_folder.write_recipe(output, recipe)
        if fitted.coefficients:
            with atomic_path(output / run_folder.COEFFICIENTS) as path:
                path.write_text(json.dumps(fitted.coefficients, indent=2) + "\n", encoding="utf-8")
        model_folder.save(output, saved)
        write_card(output, saved, recipe, [features_read(part, saved) for part in parts], Shares())
    if fitted.note:
        print(fitted.note, file=sys.stderr)
    return saved


def _fit_logit(learned: Dataset, recipe: Recipe) -> Fitted:
    from ptrnet.training.conditional_logit import fit_coefficients

    model = models.for_task(recipe.model, recipe.task, recipe.network)
    assert isinstance(model, ConditionalLogit)
    fit = fit_coefficients(learned, recipe.task, recipe.columns.group, model.marks_of_nests())
    with torch.no_grad():
        model.weights.copy_(torch.from_numpy(fit.weights))
        if model.nests is not None:
            model.nests.parameter.copy_(torch.from_numpy(fit.nests))
    return Fitted(model, fit.table.to_dict(), str(fit.table))


def _fit_chooser(learned: Dataset, recipe: Recipe) -> Fitted:
    from ptrnet.training.spaces import fit_spaces

    spaces, facts = fit_spaces(learned, recipe.task, MAX_ROWS), recipe.task.facts
    settings = {"spaces": len(spaces), "answer": facts.answer}
    model = models.build(recipe.model, facts.num_features, facts.num_specials, **settings)
    assert isinstance(model, Chooser)
    model.spaces = spaces
    count = len(learned.elements)
    if count <= FEW_ELEMENTS:
        return Fitted(model)
    note = (
        f"{count:,} elements: model {recipe.model} is for fewer than {FEW_ELEMENTS:,}; from so "
        "many a model that ptrnet trains by default learns more"
    )
    return Fitted(model, note=note)


FITS: dict[str, Callable[[Dataset, Recipe], Fitted]] = {
    models.LOGIT: _fit_logit,
    models.CHOOSER: _fit_chooser,
}
