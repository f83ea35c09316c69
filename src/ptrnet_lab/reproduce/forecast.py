"""Forecast how long trainings will take on this machine, by measuring a few of their steps."""

import time
from collections.abc import Iterable
from pathlib import Path

from ptrnet.progress import track
from ptrnet.training.examples import open_stream
from ptrnet.training.hardware import device_of
from ptrnet.training.recipe import Recipe
from ptrnet_lab.bench.train import TrainingStep, ptrnet_step
from ptrnet_lab.reproduce.trainings import folder_of, is_trained, steps_done

WARMUPS, STEPS = 3, 8  # WARMUPS steps compile kernels and allocate memory; they are not counted


def seconds_left(recipes: Iterable[Recipe], runs: Path) -> dict[Path, float]:
    """Return the remaining seconds of each training, by folder; 0 for a training that has ended.

    We measure a few steps, including the time to draw and label their examples. Validations and
    checkpoints are not counted.
    """
    by_folder = {folder_of(recipe, runs): recipe for recipe in recipes}
    rest = {f: r.run.steps - steps_done(f) for f, r in by_folder.items() if not is_trained(f)}
    title = "measuring a few steps of each training"
    left = dict.fromkeys(by_folder, 0.0)
    measured: dict[str, float] = {}
    for folder, steps in track(rest.items(), title, len(rest)):
        work = _work_of_a_step(by_folder[folder])
        if work not in measured:
            measured[work] = seconds_per_step(by_folder[folder])
        left[folder] = steps * measured[work]
    return left


def _work_of_a_step(recipe: Recipe) -> str:
    """Return a key that is equal for recipes whose steps take the same time."""
    same = {"steps", "seed", "learning_rate", "schedule", "warmup", "examples", "start"}
    return str({key: value for key, value in recipe.table().items() if key not in same})


def seconds_per_step(recipe: Recipe) -> float:
    """Return the mean time of STEPS steps of a training, after WARMUPS steps that are not counted.

    The time includes waiting for the examples of a step.
    """
    recipe = recipe.replace(device=device_of(recipe.run.device), valid_batches=0)
    stream = open_stream(recipe)
    step = TrainingStep(ptrnet_step(recipe), stream, recipe.run.device)
    for _ in range(WARMUPS):
        step()
    began = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - began) / STEPS


def duration(seconds: float) -> str:
    """Return a duration as text: `20 s`, `12 min`, `3 h 20 min`, `2 d 4 h`.

    Examples:
        >>> duration(12_000)
        '3 h 20 min'
    """
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"
