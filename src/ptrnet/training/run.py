"""Run a recipe: train a model and save it to a folder."""

import contextlib
import sys
from pathlib import Path
from typing import Any

import torch

from ptrnet import model_folder, models
from ptrnet.errors import InputError, NotFiniteError
from ptrnet.kernels.eager import use_compiled_kernels
from ptrnet.models.base import PointerModel
from ptrnet.models.parts.random_numbers import DrawFrom
from ptrnet.solver import Solver
from ptrnet.training import checkpoint, run_folder
from ptrnet.training.callbacks import BestWeights, Hooks, diverged_error
from ptrnet.training.conditional_logit import forget_logits, mix_with_logits
from ptrnet.training.costs import CostModule, UserCosts, open_instances, task_costs
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
from ptrnet.types import Dataset


def train(
    recipe: Recipe,
    output: Path,
    resume: bool = False,
    user_costs: UserCosts | None = None,
    hooks: Hooks | None = None,
    data: Dataset | None = None,
) -> model_folder.Saved:
    """Train a model. Save the model, the recipe, the logs and the last checkpoint to `output`.

    `BestWeights` also saves the best model so far at validations. So a training that is stopped
    leaves this model or, if it is interrupted before the first validation, its present weights.

    A resumed run starts from its last checkpoint. If the machine, the software and the number of
    threads are the same, the resumed run ends with the same weights as a run that was never
    stopped.

    Args:
        recipe: what to train, and on which examples.
        output: the folder of the run.
        resume: whether to resume the run in `output`.
        user_costs: the user's instances and cost function, for a recipe that learns from costs. If
            None, the task draws instances and computes the costs of answers.
        hooks: the caller's callbacks and loggers.
        data: the examples of the recipe's file. If None, `train` opens the file.

    Raises:
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
        if is_main_process():  # before the examples are read, which may take long
            if resume:
                locks.enter_context(run_folder.locked(output))
                run_folder.check_recipe(output, recipe)
            else:
                run_folder.check_unused(output)
        return _train(recipe, output, resume, user_costs, hooks or Hooks(), data, locks)


def _train(
    recipe: Recipe,
    output: Path,
    resume: bool,
    user_costs: UserCosts | None,
    hooks: Hooks,
    data: Dataset | None,
    locks: contextlib.ExitStack,
) -> model_folder.Saved:
    begun = checkpoint.read_last(output) if resume else None
    step = int(begun.content["global_step"]) if begun else 0
    module, examples = _prepare(recipe, user_costs, step, data)

    def save(step: int) -> None:
        model_folder.save(
            output, model_folder.Saved(module.model, recipe.task, _facts(recipe, step))
        )

    best = BestWeights(recipe.patience, save, examples.valid_groups)
    trainer = build_trainer(recipe, output, best, hooks)
    if is_main_process():
        if not resume:
            run_folder.create(output)
            locks.enter_context(run_folder.locked(output))
            run_folder.write_recipe(output, recipe)
        if fingerprint := examples.stream.fingerprint:
            run_folder.pin_data(output, fingerprint, recipe.data or "instances")
        if begun:
            begun.make_last()

    if begun:
        module.load_state_dict(begun.content["state_dict"])
        best.load_state_dict(begun.content["callbacks"].get(best.state_key, {}))
    if step < recipe.steps and not best.has_ended:
        try:
            run_trainer(trainer, module, examples, output / checkpoint.LAST if begun else None)
        except NotFiniteError as error:  # raised by decoding, before a loss is computed
            raise diverged_error(output, trainer.global_step) from error
        except KeyboardInterrupt:
            if best.step == 0 and is_main_process() and _is_ahead(output, trainer.global_step):
                save(trainer.global_step)
            raise

    saved = _trained_model(recipe, module, best, max(step, trainer.global_step))
    if is_main_process():  # before the mixture and the card, which may take long
        model_folder.save(output, saved)
    share = mix_with_logits(saved.model, recipe.task, examples)
    if is_main_process():
        if share == 1:
            print(
                "all probabilities come from a conditional logit, because no mixture with the "
                "network clearly predicts the validation examples better",
                file=sys.stderr,
            )
        elif share:
            print(
                f"{share:.0%} of each probability comes from a conditional logit, because the "
                "mixture predicts the validation examples better",
                file=sys.stderr,
            )
        model_folder.save(output, saved)
        tested = examples.valid or [fresh_test_examples(recipe)]
        write_card(output, saved, recipe, tested, share)
    return saved


def _is_ahead(output: Path, step: int) -> bool:
    """Whether `step` is after the step of the model in a run's folder, if there is one."""
    there = model_folder.load(output).trained if model_folder.is_there(output) else {}
    return step > int(there.get("steps", 0))


def _network(recipe: Recipe) -> PointerModel:
    """Build the recipe's model with random weights, in float32 whatever PyTorch's default is.

    The weights depend on the recipe's seed alone.
    """
    with torch.device("cpu"), DrawFrom(torch.Generator().manual_seed(recipe.seed)):
        return models.for_task(recipe.model, recipe.task, recipe.network).float()


def _prepare(
    recipe: Recipe, user_costs: UserCosts | None, first: int, data: Dataset | None
) -> tuple[TrainingModule, TrainingExamples]:
    """Return the module with its initial weights, and the examples from batch `first` on.

    Raises:
        InputError: the examples cannot be used, or the model cannot answer the validation batches.
    """
    model = _network(recipe)
    if recipe.weights and first == 0:  # a resumed run loads the weights of its checkpoint
        _load_weights(model, recipe)
    if recipe.learning == "answers":
        module, examples = TrainingModule(model, recipe), open_examples(recipe, first, data)
    else:
        costs = user_costs.costs if user_costs else task_costs(recipe.task)
        examples = open_instances(recipe, user_costs, first)
        module = CostModule(model, recipe, recipe.task, costs)
    for batch in examples.valid_batches:
        model.check_lengths(batch.lengths)
    return module, examples


def _load_weights(model: PointerModel, recipe: Recipe) -> None:
    """Load the weights of `recipe.weights` into a new model.

    Raises:
        InputError: there is no such model, or the model has another network or other fields than
            the recipe.
    """
    solver = _model_of(recipe.weights)
    name, settings = model_folder.registered_name(solver.model), solver.model.settings()
    expected = {"model": recipe.model, "features": model.features, **model.settings()}
    expected["special slots"] = model.num_specials
    actual = {"model": name, "features": solver.model.features, **settings}
    actual["special slots"] = solver.model.num_specials
    for key in ("fields", "categories"):  # they define what each feature means
        expected[key], actual[key] = (getattr(t, key, ()) for t in (recipe.task, solver.task))
    for key, value in expected.items():
        if actual.get(key) != value:
            raise InputError(
                f"weights: {recipe.weights} has {key} {actual.get(key)}, the recipe has {value}"
            )
    model.load_state_dict(solver.model.state_dict())
    forget_logits(model)  # the logits fit the choices that the other model learned from


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
    TrainingModule(model, recipe).load_state_dict(begun.content["state_dict"])
    return Solver(model.eval(), recipe.task)


def _trained_model(
    recipe: Recipe, module: TrainingModule, best: BestWeights, steps: int
) -> model_folder.Saved:
    """Return the model with the best weights or, without `patience`, with the last weights."""
    if best.weights:
        module.load_state_dict(best.weights)
        steps = best.step
    return model_folder.Saved(module.model.cpu().eval(), recipe.task, _facts(recipe, steps))


def _facts(recipe: Recipe, steps: int) -> dict[str, Any]:
    """Return facts about the training, to be saved with the model."""
    sizes, batch_size, seed = str(recipe.n), recipe.batch_size, recipe.seed
    return {"n": sizes, "steps": steps, "batch_size": batch_size, "seed": seed}
