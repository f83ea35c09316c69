"""Run a recipe: train a model and save it to a folder."""

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ptrnet import model_folder, models
from ptrnet.errors import InputError, check_package
from ptrnet.kernels import use_compiled_kernels
from ptrnet.kernels.threads import one_thread
from ptrnet.models.base import PointerModel
from ptrnet.models.parts import DrawFrom
from ptrnet.models.settings import SetSettings
from ptrnet.solver import Solver
from ptrnet.training import checkpoint, run_folder
from ptrnet.training.examples import (
    fresh_test_examples,
    make_valid_batches,
    open_stream,
    open_valid,
    valid_groups,
)
from ptrnet.training.loop import (
    BestWeights,
    build_fabric,
    end_with_launcher,
    is_main_process,
    run_steps,
    saved_step,
)
from ptrnet.training.mixture import Shares, forget_others, grow_trees, mix, mixed_with
from ptrnet.training.module import TrainingModule
from ptrnet.training.recipe import Recipe
from ptrnet.training.reports import Hooks
from ptrnet.training.run_card import write_card
from ptrnet.types import Dataset

if TYPE_CHECKING:
    from ptrnet.models.parts.trees import Trees
    from ptrnet.training.costs import Costs


# The steps of a network that scores each element once use one thread if a batch has at most this
# many elements times units. A second thread makes larger steps faster. On a busy machine it makes
# these steps several times as slow, because each operation waits for it.
SMALL_STEP = 200_000


def train(
    recipe: Recipe,
    output: Path,
    resume: bool = False,
    data: Dataset | None = None,
    costs: "Costs | None" = None,
    hooks: Hooks | None = None,
) -> model_folder.Saved:
    """Train a model. Save the model, the recipe, the logs and the last checkpoint to `output`.

    `BestWeights` also saves the best model so far at validations. So a training that is stopped
    leaves this model or, if it is interrupted before the first validation, its present weights.

    A resumed run starts from its last checkpoint. If the machine, the software and the number of
    threads are the same, the resumed run ends with the same weights as a run that was never
    stopped.

    A conditional logit and a chooser are not trained in steps; see `train_at_once`.

    Args:
        recipe: what to train, and on which examples.
        resume: whether to resume the run in `output`.
        data: the examples of the recipe's file, or a user's instances to learn from costs. If None,
            `train` opens the file, or the task draws instances.
        costs: computes the costs of answers, for a recipe that learns from costs. If None, the task
            does.

    Raises:
        MissingExtraError: the recipe has trees, but the extra that grows them is not installed.
        InputError: `output` holds another run, has no run to resume, or is locked by another
            training. Nothing was written.
        DivergedError: the loss is not finite. The last good checkpoint is kept.
        KeyboardInterrupt: the training was interrupted, by Ctrl-C or SIGTERM.
    """
    end_with_launcher()
    use_compiled_kernels()
    with contextlib.ExitStack() as locks:  # released when the training ends, even with an error
        # The caller may be in a context without gradients, such as `torch.inference_mode()`.
        locks.enter_context(torch.inference_mode(False))
        locks.enter_context(torch.enable_grad())
        if torch.get_default_device().type != "cpu":  # the context slows each operation down
            locks.enter_context(torch.device("cpu"))
        if recipe.model in models.AT_ONCE:
            from ptrnet.training.at_once import train_at_once

            return train_at_once(recipe, output, resume, data, hooks or Hooks())
        if getattr(recipe.network, "trees", 0):
            check_package("lightgbm", "growing trees", "trees")
        work = recipe.data.batch_size * recipe.data.n[-1] * recipe.network.hidden_size
        if recipe.network.scores_once and work <= SMALL_STEP:
            locks.enter_context(one_thread())
        if is_main_process():  # before the examples are read, which may take long
            if resume:
                locks.enter_context(run_folder.locked(output))
                run_folder.check_recipe(output, recipe)
            else:
                run_folder.check_unused(output)
        return _train(recipe, output, resume, data, costs, hooks or Hooks(), locks)


def _train(
    recipe: Recipe,
    output: Path,
    resume: bool,
    data: Dataset | None,
    costs: "Costs | None",
    hooks: Hooks,
    locks: contextlib.ExitStack,
) -> model_folder.Saved:
    begun = checkpoint.read_last(output) if resume else None
    step = begun.step if begun else 0
    fabric = build_fabric(recipe)
    model = _network(recipe)
    if recipe.run.weights and not begun:  # a resumed run loads the weights of its checkpoint
        _load_weights(model, recipe)
    has_answers = recipe.objective.has_answers
    if has_answers:
        module = TrainingModule(model, recipe, fabric)
    else:
        from ptrnet.training.costs import CostModule, task_costs

        module = CostModule(model, recipe, fabric, costs or task_costs(recipe.task))
    stream = open_stream(recipe, step, data)
    valid_parts = open_valid(recipe, stream)
    valid_batches = make_valid_batches(recipe, valid_parts)
    for batch in valid_batches:
        model.check_lengths(batch.lengths)
    trees: list[Trees] = []

    def save(step: int) -> None:
        if is_main_process():
            with mixed_with(model, trees, 0.5 if best.step else 1.0):
                saved = model_folder.Saved(model, recipe.task, _facts(recipe, step))
                model_folder.save(output, _as_saved(saved, recipe))

    best = BestWeights(recipe.run.patience, save, valid_groups(valid_parts))
    if is_main_process():
        if not resume:
            run_folder.create(output)
            locks.enter_context(run_folder.locked(output))
            run_folder.write_recipe(output, recipe)
        if fingerprint := stream.fingerprint:
            run_folder.pin_data(output, fingerprint, recipe.data.data or "instances")
        if begun:
            begun.make_last()
    if begun:
        model.load_state_dict(begun.content["state_dict"])
        best.load_state_dict(begun.content["best"])
    # Trees grow in seconds, and a network learns for minutes. So grow them first: then a training
    # that is stopped leaves a useful model, however early.
    if has_answers:
        for grown in grow_trees(model, recipe, stream, valid_parts):
            trees[:] = grown
            if not saved_step(output):
                save(0)
    if step < recipe.run.steps and not best.has_ended:
        step = run_steps(recipe, fabric, module, stream, valid_batches, best, output, begun, hooks)

    if best.weights:  # with patience, the best weights; otherwise the last ones
        model.load_state_dict(best.weights)
        step = best.step
    saved = model_folder.Saved(model.cpu().eval(), recipe.task, _facts(recipe, step))
    save(step)  # before the mixture and the card, which may take long
    shares = mix(saved.model, recipe, stream, valid_parts, trees) if has_answers else Shares()
    saved = _as_saved(saved, recipe)
    if recipe.columns.position:
        from ptrnet.training.positions import features_read

        valid_parts = [features_read(part, saved) for part in valid_parts]
    if is_main_process():
        if shares != Shares():
            print(f"the validation examples chose what answers: {shares}", file=sys.stderr)
        model_folder.save(output, saved)
        fresh = None if valid_parts else fresh_test_examples(recipe)
        tested = valid_parts if fresh is None else [fresh]
        write_card(output, saved, recipe, tested if has_answers else [], shares)
    return saved


def _as_saved(saved: model_folder.Saved, recipe: Recipe) -> model_folder.Saved:
    """Return the model as it is saved: without the positions of clicks."""
    if not recipe.columns.position:  # few trainings need the imports of `positions`
        return saved
    from ptrnet.training.positions import without_positions

    return without_positions(saved, recipe)


def _network(recipe: Recipe) -> PointerModel:
    """Build the recipe's model with random weights, in float32 whatever PyTorch's default is.

    The weights depend on the recipe's seed alone. `mix` adds other models after the training.
    """
    settings = recipe.network
    if isinstance(settings, SetSettings):
        settings = replace(settings, trees=0, spaces=0)
    with torch.device("cpu"), DrawFrom(torch.Generator().manual_seed(recipe.run.seed)):
        return models.for_task(recipe.model, recipe.task, settings).float()


def _load_weights(model: PointerModel, recipe: Recipe) -> None:
    """Load the weights of `recipe.run.weights` into a new model.

    Raises:
        InputError: there is no such model, or the model has another network or other fields than
            the recipe.
    """
    solver = _model_of(recipe.run.weights)
    forget_others(solver.model)  # they fit the examples that the other model learned from
    name, settings = model_folder.registered_name(solver.model), solver.model.settings()
    expected = {"model": recipe.model, "features": model.features, **model.settings()}
    expected["special slots"] = model.num_specials
    actual = {"model": name, "features": solver.model.features, **settings}
    actual["special slots"] = solver.model.num_specials
    # These define what each feature means, and which ones only a monotone path reads.
    for key in ("fields", "categories", "increasing", "decreasing"):
        expected[key], actual[key] = (getattr(t, key, ()) for t in (recipe.task, solver.task))
    for key, value in expected.items():
        if actual.get(key) != value:
            raise InputError(
                f"weights: {recipe.run.weights} has {key} {actual.get(key)}, the recipe has {value}"
            )
    model.load_state_dict(solver.model.state_dict())


def _model_of(name_or_path: str) -> Solver:
    """Load a model by its name or folder.

    If the folder holds a run that has not saved a model yet, use the weights of its checkpoint.
    """
    folder = Path(name_or_path)
    has_run, has_model = (
        (folder / file).is_file() for file in (run_folder.RECIPE, model_folder.CONFIG)
    )
    begun = checkpoint.read_last(folder) if has_run and not has_model else None
    if begun is None:
        from ptrnet import weights

        return weights.load(name_or_path)
    recipe = Recipe.read(folder / run_folder.RECIPE)
    model = _network(recipe)
    model.load_state_dict(begun.content["state_dict"])
    return Solver(model.eval(), recipe.task)


def _facts(recipe: Recipe, steps: int) -> dict[str, Any]:
    """Return facts about the training, to be saved with the model."""
    sizes, batch_size, seed = str(recipe.data.n), recipe.data.batch_size, recipe.run.seed
    return {"n": sizes, "steps": steps, "batch_size": batch_size, "seed": seed}
