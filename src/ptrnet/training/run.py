"""A recipe, run: from examples to a model's folder."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import torch
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader

from ptrnet import model_files, models, tasks
from ptrnet.data import formats
from ptrnet.data.batches import batches_of
from ptrnet.data.cuts import CutStream, cut
from ptrnet.data.file_stream import FileStream
from ptrnet.data.learned import check
from ptrnet.data.sizes import parse_sizes
from ptrnet.data.stream import VALID, ExampleStream
from ptrnet.data.symmetries import augmented, unchanged
from ptrnet.tasks.base import Task
from ptrnet.tasks.own import Own
from ptrnet.training import folder
from ptrnet.training.best import BestWeights
from ptrnet.training.card import write_card
from ptrnet.training.checkpoints import AtomicCheckpointIO, PeriodicCheckpoint
from ptrnet.training.hardware import device_of, precision_of, products
from ptrnet.training.module import Training
from ptrnet.training.progress import LOG_EVERY, TrainingProgress
from ptrnet.training.recipe import Recipe
from ptrnet.types import Batch, CutBatch, Example


def train(recipe: Recipe, output: Path, resume: bool = False) -> model_files.Saved:
    """Trains, and leaves in `output` the model, the recipe, the logs and the last checkpoint.

    With `resume` the run that `output` holds goes on from its checkpoint, to the very weights
    that it would have reached without a stop (same machine, versions and thread count).

    Raises:
        InputError: `output` holds another run, or none to resume; nothing was written.
    """
    task = tasks.get(recipe.task, **recipe.settings)
    before = folder.state(output) if resume else None
    first = int(before["global_step"]) if before else 0
    examples = _examples(recipe, task, first)
    known = _known(recipe, task, examples)
    valid = batches_of(known, task, recipe.batch_size) or _fresh(recipe, task)
    torch.manual_seed(recipe.seed)
    model = models.build(recipe.model, task.features, task.specials, **recipe.network())
    for batch in valid:
        model.check(batch.lengths)
    training, best = Training(model, recipe), BestWeights(recipe.patience)
    trainer = _trainer(recipe, output, best)
    if leads():
        if resume:
            folder.check_same(output, recipe)
        else:
            folder.claim(output, recipe)
        if isinstance(examples, FileStream):
            folder.hold(output, examples.key, recipe.data)

    if before is None or not _over(before, recipe):
        _fit(
            trainer,
            training,
            CutStream(examples, recipe.cuts) if recipe.cuts else examples,
            _cut(recipe, task, valid) if recipe.cuts else valid,
            output / folder.CHECKPOINT if before else None,
        )
    else:
        training.load_state_dict(before["state_dict"])
        best.load_state_dict(before["callbacks"].get(best.state_key, {}))
    trained = {key: getattr(recipe, key) for key in ("n", "steps", "batch_size", "seed")}
    if best.weights:  # none where nothing was validated, or no patience asks for them
        training.load_state_dict(best.weights)
        trained["steps"] = best.step
    saved = model_files.Saved(model.cpu().eval(), task, trained)
    if leads():
        model_files.save(output, saved)
        if known:
            write_card(output, saved, recipe, known)
    return saved


def _examples(recipe: Recipe, task: Task, first: int) -> ExampleStream | FileStream:
    """The batches from number `first` on: of a file's examples, or of fresh ones."""
    sizes, size, seed = parse_sizes(recipe.n), recipe.batch_size, recipe.seed
    if isinstance(task, Own):
        check(recipe.data, task)
    if recipe.data:
        change = augmented if recipe.augment else unchanged
        return FileStream(
            recipe.data,
            task,
            sizes,
            size,
            seed,
            first,
            change=change,
            valid_share=recipe.valid_share,
            most_valid=recipe.valid_batches * size,
        )
    labeller = recipe.labeller or None
    return ExampleStream(task, sizes, size, seed, first=first, labeller=labeller)


def _known(recipe: Recipe, task: Task, examples: ExampleStream | FileStream) -> list[Example]:
    """The examples of files that the training validates on: of their own, or held out."""
    if recipe.valid:
        return list(formats.read(recipe.valid, task))
    return examples.held_out if isinstance(examples, FileStream) else []


def _fresh(recipe: Recipe, task: Task) -> list[Batch]:
    """Batches to validate on that the training does not see."""
    sizes, size, seed = parse_sizes(recipe.n), recipe.batch_size, recipe.seed
    if not recipe.valid_batches:
        return []
    stream = ExampleStream(task, sizes, size, seed, VALID, labeller=recipe.labeller or None)
    return [stream.batch(k) for k in range(recipe.valid_batches)]


def _cut(recipe: Recipe, task: Task, valid: Sequence[Batch]) -> list[CutBatch]:
    """The batches to validate on, each answer cut once."""
    return [
        cut(np.random.default_rng([recipe.seed, VALID, k, 1]), task, batch, 1)
        for k, batch in enumerate(valid)
    ]


def leads() -> bool:
    """Whether this is the one of a training's processes that writes."""
    return getattr(rank_zero_only, "rank", 0) == 0


def _trainer(recipe: Recipe, output: Path, best: BestWeights) -> pl.Trainer:
    device = device_of(recipe.device)
    precision = precision_of(recipe.precision, device)
    for part in ("pytorch", "fabric"):
        logging.getLogger(f"lightning.{part}").setLevel(logging.ERROR)
    logs = output / "logs"
    return pl.Trainer(
        max_steps=recipe.steps,
        accelerator=device,
        devices=recipe.devices,
        num_nodes=recipe.nodes,
        strategy="ddp" if recipe.devices * recipe.nodes > 1 else "auto",
        use_distributed_sampler=False,  # streams share batches, and all processes validate alike
        precision="bf16-mixed" if precision == "bfloat16" else "32-true",
        val_check_interval=recipe.valid_every,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        log_every_n_steps=LOG_EVERY,
        logger=[CSVLogger(logs, "csv"), TensorBoardLogger(logs, "tensorboard")],
        callbacks=[
            TrainingProgress(recipe.batch_size),
            *([best] if recipe.patience else []),
            PeriodicCheckpoint(
                output / folder.CHECKPOINT, recipe.checkpoint_every, recipe.valid_every
            ),
        ],
        plugins=[AtomicCheckpointIO()],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


class _Part:
    """The part of every batch that this process trains on; the running trainer knows which."""

    def __init__(
        self, examples: ExampleStream | FileStream | CutStream, trainer: pl.Trainer
    ) -> None:
        self.examples, self.trainer = examples, trainer

    def __iter__(self) -> Iterator[Batch | CutBatch]:
        return self.examples.batches(self.trainer.global_rank, self.trainer.world_size)


def _fit(
    trainer: pl.Trainer,
    training: Training,
    examples: ExampleStream | FileStream | CutStream,
    valid: Sequence[Batch | CutBatch],
    checkpoint: Path | None,
) -> None:
    loader: Any = DataLoader(valid, batch_size=None) if valid else None  # type: ignore[arg-type]
    try:
        with warnings.catch_warnings():
            # Lightning warns of what is meant here: batches without workers, a run that ends in
            # the midst of an epoch, a checkpoint there.
            warnings.simplefilter("ignore")
            part = _Part(examples, trainer)
            device = device_of(training.recipe.device)
            with products(precision_of(training.recipe.precision, device), device):
                trainer.fit(training, part, loader, ckpt_path=checkpoint, weights_only=True)
    except SystemExit:  # Lightning's answer to an interrupt
        raise KeyboardInterrupt from None
    finally:
        if torch.distributed.is_initialized():  # its threads would abort the process at its end
            torch.distributed.destroy_process_group()


def _over(state: dict[str, Any], recipe: Recipe) -> bool:
    """Whether the run that left a checkpoint had come to its end."""
    best = state["callbacks"].get(BestWeights.state_key)
    ended = best is not None and BestWeights.over(best, recipe.patience)
    return ended or int(state["global_step"]) >= recipe.steps
