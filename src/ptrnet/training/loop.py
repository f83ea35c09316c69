"""The loop of a training: from its first step to its last. Read `run_steps` from top to bottom.

Lightning Fabric starts the processes of a training, and averages their gradients.
"""

import contextlib
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.utilities.rank_zero import rank_zero_only
from torch import Tensor, nn

from ptrnet import model_folder
from ptrnet.data.batches import Batch
from ptrnet.data.streams import BatchStream
from ptrnet.errors import DivergedError, ModelError, NotFiniteError
from ptrnet.metrics import Moments
from ptrnet.parallel import end_with
from ptrnet.training import checkpoint, optimizers
from ptrnet.training.checkpoint import Checkpoint
from ptrnet.training.hardware import device_of, matmul_precision, precision_of
from ptrnet.training.module import TrainingModule
from ptrnet.training.recipe import Recipe
from ptrnet.training.reports import LOG_EVERY, Hooks, Progress
from ptrnet.types import Indices

_LAUNCHER = "_PTRNET_LAUNCHER"  # environment variable: the process id of the main process
DECAY = 0.2  # schedule "trapezoid": share of a cycle's steps in which the rate falls
LOSS_ROUNDING = 1e-2  # rounding to bfloat16 may push a mean loss below 0 by this much


def run_steps(
    recipe: Recipe,
    fabric: Fabric,
    module: TrainingModule,
    stream: BatchStream,
    valid_batches: Sequence[Batch],
    best: "BestWeights",
    output: Path,
    begun: Checkpoint | None,
    hooks: Hooks,
) -> int:
    """Train a network to the last step. Return the number of this step.

    Args:
        fabric: the processes of the training; see `build_fabric`.
        stream: the training batches; the first one is for the first step of this call.
        best: gets the losses of each validation.
        output: the folder of the run, for checkpoints and logs.
        begun: the checkpoint to resume from. None: start with the weights of the network.

    Raises:
        KeyboardInterrupt: the training was interrupted. The folder then has a model.
        DivergedError: the loss is not finite. The last good checkpoint is kept.
    """
    step, last = begun.step if begun else 0, recipe.run.steps
    valid_every = min(recipe.run.valid_every, last)  # a short run validates at its end
    precision = precision_of(recipe, fabric.device.type)
    autocast = torch.autocast(fabric.device.type, torch.bfloat16, enabled=precision == "bfloat16")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_interrupted_by_sigterm())
        stack.enter_context(matmul_precision(precision, fabric.device.type))
        stack.enter_context(_quiet_log_threads())
        stack.enter_context(_launched(fabric))
        network = fabric.setup_module(module)
        stack.callback(module.forget_seeds)
        optimizer = optimizers.optimizer(recipe, module.model)
        rates = [group["lr"] for group in optimizer.param_groups]
        if begun:
            optimizer.load_state_dict(begun.content["optimizer"])
        check = LossCheck(recipe, fabric, module.model, output)
        log = stack.enter_context(hooks.logging(output, recipe)) if fabric.is_global_zero else None
        progress = stack.enter_context(Progress(recipe, step, log))
        batches = stream.batches(fabric.global_rank, fabric.world_size)
        stack.enter_context(contextlib.closing(batches))
        try:
            for batch in batches:
                for group, rate in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = rate * rate_factor(recipe, step)
                with autocast:
                    metrics = network(fabric.to_device(batch), step)
                fabric.backward(metrics["loss"])
                torch.nn.utils.clip_grad_norm_(module.parameters(), recipe.optimiser.clip)
                optimizer.step()
                optimizer.zero_grad()
                step += 1

                metrics = {name: value.detach() for name, value in metrics.items()}
                validates = bool(valid_batches) and step % valid_every == 0
                saves = step == last or step % recipe.run.checkpoint_every == 0
                is_due = validates or saves or step % LOG_EVERY == 0
                check(step, [metrics["loss"]], is_due)
                progress.add(step, metrics)
                if validates:
                    with autocast:
                        losses, means = _validate(fabric, module, valid_batches)
                    saves |= best.update(step, losses, module.model)
                    progress.add_validation(step, means)
                    metrics |= means
                # In all processes, or in none: the others would wait for a process that has ended.
                ends = bool(hooks.callbacks) and fabric.broadcast(hooks.after_step(step, metrics))
                if ends and not is_due:
                    check(step, [], True)
                if validates and fabric.broadcast(best.has_ended):
                    ends = True
                    progress.say(f"stopped at step {step}: {best.why_ended}")
                if fabric.is_global_zero and (saves or ends):
                    checkpoint.write(
                        output / checkpoint.LAST,
                        {
                            "global_step": step,
                            "state_dict": module.model.state_dict(),
                            "optimizer": optimizer.state_dict(),
                            "best": best.state_dict(),
                        },
                    )
                if ends or step == last:
                    break
        except NotFiniteError as error:  # raised by decoding, before a loss is computed
            raise diverged_error(output, step) from error
        except KeyboardInterrupt:
            if best.step == 0 and step > saved_step(output):
                best.save(step)
            raise
        finally:
            # Before the process group is destroyed. Otherwise the network would hold the last
            # reference to the group, and PyTorch would wait for the group's threads while it holds
            # the GIL. Such a thread waits for the GIL if it has to free a tensor of Python.
            del network
    return step


def saved_step(output: Path) -> int:
    """Return the step of the model in a run's folder; 0 if there is no model."""
    trained = model_folder.load(output).trained if model_folder.is_there(output) else {}
    return int(trained.get("steps", 0))


def rate_factor(recipe: Recipe, step: int) -> float:
    """Return the factor of the learning rate after `step` steps: a warm-up, then the schedule.

    Haegele et al. (2024) find the trapezoid as good as "one-cycle". The trapezoid's rate is
    constant between the warm-up and the decay, so a longer training can go on from a checkpoint
    of this phase. Wen et al. (2024) repeat the trapezoid (`cycles`), and find the result about as
    good as that of one long trapezoid.
    """
    given = recipe.optimiser
    steps = recipe.run.steps // given.cycles  # of one cycle
    warmup_steps = max(1, round(given.warmup * steps))
    decay_steps = max(1, round(DECAY * steps))
    step %= steps
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if given.schedule == "constant":
        return 1.0
    if given.schedule == "trapezoid":
        return min(1.0, (steps - step) / decay_steps)
    progress = (step - warmup_steps) / max(1, steps - warmup_steps)
    return (1 + math.cos(math.pi * progress)) / 2


@torch.no_grad()
def _validate(
    fabric: Fabric, module: TrainingModule, batches: Sequence[Batch]
) -> tuple[Tensor, dict[str, float]]:
    """Return the validation losses of all examples, and the means of all metrics."""
    modes = [(part, part.training) for part in module.modules()]  # a user may have frozen some
    module.eval()
    losses: list[Tensor] = []
    sums: dict[str, float] = {}
    for batch in batches:
        of_answers, means = module.validate(fabric.to_device(batch))
        losses.append(of_answers.double().cpu())
        for name, mean in means.items():
            sums[name] = sums.get(name, 0.0) + float(mean) * len(of_answers)
    for part, mode in modes:
        part.training = mode
    count = sum(map(len, losses))
    return torch.cat(losses), {f"valid_{name}": total / count for name, total in sums.items()}


class BestWeights:
    """Saves the model of the latest validation whose loss is close to the lowest. Stops early.

    With `patience`, it also keeps the weights of this validation, which the training ends with.

    A mean loss is close to the lowest mean loss if it exceeds the lowest by at most one standard
    error. To compute this error, subtract the losses of the best validation from the losses of the
    new validation, example by example, and take the standard error of the mean of the differences,
    which only counts groups as independent if the examples have groups.
    With few examples the lowest loss is partly chance, and weights of a later step with nearly the
    same loss do better on new data (one-standard-error rule; Breiman et al. 1984).

    The state is part of every checkpoint, so a resumed run stops at the same step as a run that was
    never interrupted.

    Args:
        patience: stop after this many validations in a row without a lower loss; 0 means never.
        save: saves the present model; called with the step.
        groups: `(num_examples,)`, the codes of the groups of the validation examples, if known.
    """

    def __init__(
        self, patience: int, save: Callable[[int], None], groups: Indices | None = None
    ) -> None:
        self.patience, self.save, self.groups, self.waited = patience, save, groups, 0
        self.losses: Tensor | None = None  # (num_examples,) of the validation with the lowest mean
        self.step = 0  # the step of the model that was saved; 0 if none was
        self.weights: dict[str, Tensor] = {}  # of this step, if there is a patience

    def update(self, step: int, losses: Tensor, model: nn.Module) -> bool:
        """Take the losses of a validation. Return whether the present model is now the best."""
        self.waited += 1
        is_better = self._is_as_good(losses)
        if is_better:
            self.step = step
            if self.patience:
                state = model.state_dict()
                self.weights = {name: tensor.cpu().clone() for name, tensor in state.items()}
            self.save(step)
        if self.losses is None or losses.mean() < self.losses.mean():
            self.losses, self.waited = losses, 0
        return is_better

    def _is_as_good(self, losses: Tensor) -> bool:
        if self.losses is None:
            return True
        excess = (losses - self.losses).numpy()
        return bool(excess.mean() <= Moments.of(excess, self.groups).standard_error())

    @property
    def has_ended(self) -> bool:
        """Whether the patience is used up. Always False if `patience` is 0."""
        return 0 < self.patience <= self.waited

    @property
    def why_ended(self) -> str:
        return (
            f"the validation loss has not fallen below its lowest value in {self.patience} "
            f"validations; the kept weights are those of step {self.step}, the last ones within a "
            "standard error of it"
        )

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("waited", "losses", "step", "weights")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


class LossCheck:
    """Raises DivergedError if a loss or a weight is not finite.

    It runs before anything is saved or logged, so diverged weights never are.

    A single process on a CPU checks the loss after every step. On a GPU or with several processes,
    every step would have to wait for such a check, so we collect the losses. At steps that are due,
    we check the collected losses and the weights.

    Args:
        recipe: if it learns from answers, its losses are negative log-likelihoods. No probability
            is above 1, so such a loss must not be below 0. If it is below -LOSS_ROUNDING, raise
            ModelError.
        folder: the folder of the run. The error names the last good checkpoint in this folder.
    """

    def __init__(self, recipe: Recipe, fabric: Fabric, model: nn.Module, folder: Path) -> None:
        self.is_likelihood = recipe.objective.has_answers
        self.fabric, self.model, self.folder = fabric, model, folder
        self.is_cheap = fabric.device.type == "cpu" and fabric.world_size == 1
        self.recent: list[Tensor] = []

    def __call__(self, step: int, losses: Sequence[Tensor], is_due: bool) -> None:
        """Take losses up to a step. Before anything is saved or logged, the check `is_due`."""
        self.recent += losses
        if not (is_due or self.is_cheap):
            return
        recent = torch.stack(self.recent) if self.recent else torch.zeros(0)
        self.recent = []
        if self._in_any_process(self.is_likelihood and bool((recent < -LOSS_ROUNDING).any())):
            raise ModelError(
                "the loss is below 0: the model's log_probs must be log-probabilities, such as the "
                "output of log_softmax"
            )
        finite = recent.isfinite()
        has_diverged = not finite.all()
        if is_due and not has_diverged:
            has_diverged = not all(p.isfinite().all() for p in self.model.parameters())
        if self._in_any_process(has_diverged):
            first = step - len(recent) + 1
            at = first + int(finite.long().argmin()) if not finite.all() else step
            raise diverged_error(self.folder, at)

    def _in_any_process(self, is_true: bool) -> bool:
        if self.fabric.world_size == 1:
            return is_true
        count = torch.tensor(float(is_true), device=self.fabric.device)
        return bool(self.fabric.all_reduce(count, reduce_op="sum") > 0)


def diverged_error(folder: Path, step: int) -> DivergedError:
    """Return the error of a diverged run. The message names the last good checkpoint, if any."""
    good = checkpoint.read_last(folder)
    advice = "there is no checkpoint yet; start again with a smaller --learning-rate"
    if good:
        advice = (
            f"the last good checkpoint, of step {good.step}, is {good.path}; to start from the "
            f"best model so far, use --weights {folder} with a smaller --learning-rate and another "
            "--output"
        )
    return DivergedError(
        f"training diverged at step {step}: the loss or the weights are not finite; {advice}"
    )


def is_main_process() -> bool:
    """Whether this is the main process of the training. Only the main process writes and prints."""
    return getattr(rank_zero_only, "rank", 0) == 0


def end_with_launcher() -> None:
    """Make this process end when the main process of its training ends.

    If the main process is killed, it cannot stop the other processes. Without this function, they
    would wait for half an hour.
    """
    launcher = os.environ.get(_LAUNCHER, "")
    if launcher.isdecimal() and not is_main_process():
        end_with(int(launcher))


def build_fabric(recipe: Recipe) -> Fabric:
    """Return the processes of a recipe, which `launch` starts.

    Raises:
        InputError: this machine does not have the device or the precision of the recipe.
    """
    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)
    device = device_of(recipe.run.device)
    precision_of(recipe, device)
    return Fabric(
        accelerator=device,
        devices=recipe.run.devices,
        num_nodes=recipe.run.nodes,
        strategy="ddp" if recipe.run.devices * recipe.run.nodes > 1 else "auto",
    )


@contextlib.contextmanager
def _launched(fabric: Fabric) -> Iterator[None]:
    """In this context, all processes of a training run. They know our process id by `_LAUNCHER`."""
    if is_main_process():
        os.environ[_LAUNCHER] = str(os.getpid())
    try:
        fabric.launch()
        yield
    finally:
        if is_main_process():
            os.environ.pop(_LAUNCHER, None)  # a training in another thread may have removed it
        # Without this call, the threads of the process group would abort this process at exit.
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


@contextlib.contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """In this context, SIGTERM raises KeyboardInterrupt, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _quiet_log_threads() -> Iterator[None]:
    """Hide tracebacks of log threads that cannot write.

    The user still sees the error, because TensorBoard raises it again in the main thread.
    """
    hook = threading.excepthook

    def print_others(arguments: threading.ExceptHookArgs) -> None:
        if not issubclass(arguments.exc_type, OSError):
            hook(arguments)

    threading.excepthook = print_others
    try:
        yield
    except OSError:
        time.sleep(0.1)  # keep the hook until the log thread has ended
        raise
    finally:
        threading.excepthook = hook
