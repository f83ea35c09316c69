"""A recipe, run: from examples to a model's folder."""

from pathlib import Path

import torch

from ptrnet import models, tasks
from ptrnet.pretrained import model_folder
from ptrnet.tasks.base import Task
from ptrnet.training import run_folder
from ptrnet.training.callbacks.best import BestWeights
from ptrnet.training.card import write_card
from ptrnet.training.examples import TrainingExamples, open_examples
from ptrnet.training.module import TrainingModule
from ptrnet.training.recipe import Recipe
from ptrnet.training.trainer import build_trainer, is_main_process, run_trainer


def train(recipe: Recipe, output: Path, resume: bool = False) -> model_folder.Saved:
    """Trains, and leaves in `output` the model, the recipe, the logs and the last checkpoint.

    With `resume` the run in `output` goes on from its checkpoint, to the very weights that it
    would have reached without a stop (same machine, versions and thread count).

    Raises:
        InputError: `output` holds another run, or none to resume; nothing was written.
        DivergedError: the loss is no finite number; the last good checkpoint stays.
    """
    task = tasks.get(recipe.task, **recipe.settings)
    checkpoint = run_folder.load_checkpoint(output) if resume else None
    step = int(checkpoint["global_step"]) if checkpoint else 0
    examples = open_examples(recipe, task, first=step)
    module = _build_module(recipe, task, examples)
    best = BestWeights(recipe.patience)
    trainer = build_trainer(recipe, output, best)
    if is_main_process():
        _prepare_folder(output, recipe, examples.stream.fingerprint, resume)

    if checkpoint:
        module.load_state_dict(checkpoint["state_dict"])
        best.load_state_dict(checkpoint["callbacks"].get(best.state_key, {}))
    if step < recipe.steps and not best.has_ended:
        path = output / run_folder.CHECKPOINT
        run_trainer(trainer, module, examples, path if checkpoint else None)

    saved = _trained_model(recipe, task, module, best)
    if is_main_process():
        model_folder.save(output, saved)
        if examples.valid:
            write_card(output, saved, recipe, examples.valid)
    return saved


def _build_module(recipe: Recipe, task: Task, examples: TrainingExamples) -> TrainingModule:
    """The model with its first weights; refuses validation batches that it cannot answer."""
    torch.manual_seed(recipe.seed)
    model = models.build(recipe.model, task.num_features, task.num_specials, **recipe.network())
    for batch in examples.valid_batches:
        model.check_lengths(batch.lengths)
    return TrainingModule(model, recipe)


def _prepare_folder(output: Path, recipe: Recipe, fingerprint: str, resume: bool) -> None:
    """Makes the folder of a new run, or refuses one that does not hold the run to resume."""
    if resume:
        run_folder.check_recipe(output, recipe)
    else:
        run_folder.create(output, recipe)
    if fingerprint:
        run_folder.pin_data(output, fingerprint, recipe.data)


def _trained_model(
    recipe: Recipe, task: Task, module: TrainingModule, best: BestWeights
) -> model_folder.Saved:
    """The model with its best weights; with its last ones where no patience asks for the best."""
    trained = {key: getattr(recipe, key) for key in ("n", "steps", "batch_size", "seed")}
    if best.weights:
        module.load_state_dict(best.weights)
        trained["steps"] = best.step
    return model_folder.Saved(module.model.cpu().eval(), task, trained)
