"""A recipe, run: from examples to a model's folder."""

import contextlib
from pathlib import Path
from typing import Any

import torch

from ptrnet import models, weights
from ptrnet.data.dataset import Dataset
from ptrnet.errors import InputError, NotFiniteError
from ptrnet.kernels.eager import use_compiled_kernels
from ptrnet.models.base import PointerModel
from ptrnet.pretrained import model_folder
from ptrnet.solver import Solver
from ptrnet.tasks.base import Task
from ptrnet.training import checkpoint, run_folder
from ptrnet.training.callbacks import BestWeights, Hooks, diverged_error
from ptrnet.training.costs import CostModule, CostProblem, open_instances, task_costs
from ptrnet.training.examples import TrainingExamples, fresh_test_examples, open_examples
from ptrnet.training.module import TrainingModule
from ptrnet.training.recipe import Recipe
from ptrnet.training.run_card import write_card
from ptrnet.training.trainer import (
    build_trainer,
    end_with_launcher,
    is_main_process,
    run_trainer,
)


def train(
    recipe: Recipe,
    output: Path,
    resume: bool = False,
    problem: CostProblem | None = None,
    hooks: Hooks | None = None,
    data: Dataset | None = None,
) -> model_folder.Saved:
    """Trains, and leaves in `output` the model, the recipe, the logs and the last checkpoint.

    With `patience`, the best model so far is there from the first validation on.

    With `resume` the run in `output` goes on from its checkpoint, to the very weights that it
    would have reached without a stop (same machine, versions and thread count).

    Args:
        recipe: of the training.
        output: the folder.
        resume: whether to go on with the run in `output`.
        problem: a user's instances and costs, where the recipe learns from costs; the task's own
            where None.
        hooks: a caller's callbacks and loggers.
        data: the examples of the recipe's file, if they are open already.

    Raises:
        InputError: `output` holds another run, none to resume, or one that another process
            trains; nothing was written.
        DivergedError: the loss is no finite number; the last good checkpoint stays.
    """
    end_with_launcher()
    use_compiled_kernels()
    with contextlib.ExitStack() as locks:  # freed when the training ends, however it does
        if resume and is_main_process():
            locks.enter_context(run_folder.locked(output))
        return _train(recipe, output, resume, problem, hooks or Hooks(), data, locks)


def _train(
    recipe: Recipe,
    output: Path,
    resume: bool,
    problem: CostProblem | None,
    hooks: Hooks,
    data: Dataset | None,
    locks: contextlib.ExitStack,
) -> model_folder.Saved:
    task = recipe.task
    begun = checkpoint.read_last(output) if resume else None
    step = int(begun.content["global_step"]) if begun else 0
    module, examples = _prepare(recipe, task, problem, step, data)

    def save(step: int) -> None:
        model_folder.save(output, model_folder.Saved(module.model, task, _facts(recipe, step)))

    best = BestWeights(recipe.patience, save)
    trainer = build_trainer(recipe, output, best, hooks)
    if is_main_process():
        _claim(output, recipe, resume, locks)
        _pin_data(output, recipe, examples)
        if begun:
            begun.make_last()

    if begun:
        _restore(begun, module, best)
    if step < recipe.steps and not best.has_ended:
        try:
            run_trainer(trainer, module, examples, output / checkpoint.LAST if begun else None)
        except NotFiniteError as error:  # where answers are searched for, before there is a loss
            raise diverged_error(output, trainer.global_step) from error

    saved = _trained_model(recipe, task, module, best, max(step, trainer.global_step))
    if is_main_process():
        model_folder.save(output, saved)
        write_card(output, saved, recipe, examples.valid or fresh_test_examples(recipe, task))
    return saved


def _claim(output: Path, recipe: Recipe, resume: bool, locks: contextlib.ExitStack) -> None:
    """Makes the run's folder and locks it, with its recipe; or sees that it holds this recipe.

    Raises:
        InputError: `output` holds another run.
    """
    if resume:  # `train` has locked it
        run_folder.check_recipe(output, recipe)
        return
    run_folder.create(output)
    locks.enter_context(run_folder.locked(output))
    run_folder.write_recipe(output, recipe)


def _pin_data(output: Path, recipe: Recipe, examples: TrainingExamples) -> None:
    """Notes which data the run is trained on; with those of another start it is refused."""
    if examples.stream.fingerprint:
        source = recipe.data or "instances"
        run_folder.pin_data(output, examples.stream.fingerprint, source)


def _restore(begun: checkpoint.Checkpoint, module: TrainingModule, best: BestWeights) -> None:
    """Puts the weights of a checkpoint into the model, and the best ones into their callback."""
    module.load_state_dict(begun.content["state_dict"])
    best.load_state_dict(begun.content["callbacks"].get(best.state_key, {}))


def _network(recipe: Recipe, task: Task) -> PointerModel:
    """The model with fresh weights, in float32 whatever PyTorch's default is."""
    return models.for_task(recipe.model, task, recipe.network).float()


def _prepare(
    recipe: Recipe, task: Task, problem: CostProblem | None, first: int, data: Dataset | None
) -> tuple[TrainingModule, TrainingExamples]:
    """The model with its first weights, and what it is trained on from batch `first` on.

    Raises:
        InputError: examples that cannot be used, or validation batches that the model cannot
            answer.
    """
    torch.manual_seed(recipe.seed)
    model = _network(recipe, task)
    if recipe.weights and first == 0:  # a run that goes on has its own
        _load_weights(model, recipe, task)
    if recipe.learning == "answers":
        module, examples = TrainingModule(model, recipe), open_examples(recipe, task, first, data)
    else:
        costs = problem.costs if problem else task_costs(task)
        examples = open_instances(recipe, task, problem, first)
        module = CostModule(model, recipe, task, costs)
    for batch in examples.valid_batches:
        model.check_lengths(batch.lengths)
    return module, examples


def _load_weights(model: PointerModel, recipe: Recipe, task: Task) -> None:
    """Puts the weights of the model that the recipe names into a fresh one.

    Raises:
        InputError: no such model, or one of another network.
    """
    solver = _model_of(recipe.weights)
    name, settings = model_folder.registered_name(solver.model), solver.model.settings()
    expected = {"model": recipe.model, "features": model.features, **model.settings()}
    expected["special slots"] = model.num_specials
    actual = {"model": name, "features": solver.model.features, **settings}
    actual["special slots"] = solver.model.num_specials
    for key in ("fields", "categories"):  # of which every feature has its meaning
        expected[key], actual[key] = (getattr(t, key, ()) for t in (task, solver.task))
    for key, value in expected.items():
        if actual.get(key) != value:
            raise InputError(
                f"weights: {recipe.weights} has {key} {actual.get(key)}, the recipe has {value}"
            )
    model.load_state_dict(solver.model.state_dict())


def _model_of(name_or_path: str) -> Solver:
    """A model by its name or folder; of a run without a model yet, as its checkpoint has it."""
    folder = Path(name_or_path)
    has_run, has_model = (
        (folder / file).is_file() for file in (run_folder.RECIPE, model_folder.CONFIG)
    )
    begun = checkpoint.read_last(folder) if has_run and not has_model else None
    if begun is None:
        return weights.load(name_or_path)
    recipe = Recipe.read(folder / run_folder.RECIPE)
    model = _network(recipe, recipe.task)
    TrainingModule(model, recipe).load_state_dict(begun.content["state_dict"])
    return Solver(model.eval(), recipe.task)


def _trained_model(
    recipe: Recipe, task: Task, module: TrainingModule, best: BestWeights, steps: int
) -> model_folder.Saved:
    """The model with its best weights; with its last ones where no patience asks for the best."""
    if best.weights:
        module.load_state_dict(best.weights)
        steps = best.step
    return model_folder.Saved(module.model.cpu().eval(), task, _facts(recipe, steps))


def _facts(recipe: Recipe, steps: int) -> dict[str, Any]:
    """What a model's files say of its training."""
    table = recipe.table()
    return {**{key: table[key] for key in ("n", "steps", "batch_size", "seed")}, "steps": steps}
