"""Speed of reading examples from a file, and how long a training step waits for examples.

The file is a `.txt` file. The roofline is the time of reading its bytes alone.
"""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from ptrnet.data import formats
from ptrnet.data.stored import open_file
from ptrnet.data.streams import DatasetStream
from ptrnet.labels import generate_dataset
from ptrnet.tasks.base import Task
from ptrnet.training.recipe import Recipe
from ptrnet_lab.bench.harness import Row, Side, measure
from ptrnet_lab.bench.train import TrainingStep, ptrnet_step, recipe_for

COUNT = 10_000  # examples in the file
STEPS = 10  # training steps per repeat; there is time for several, because the network is small

Run = Callable[[], object]


def rows(
    task: str = "hull",
    n: int = 50,
    batch_size: int = 128,
    hidden_size: int = 128,
    precision: str = "auto",
    device: str = "cpu",
    repeats: int = 5,
    seed: int = 0,
) -> Iterator[Row]:
    """Rows for reading, and for steps of a small network. Raises InputError like `train.rows`."""
    recipe = recipe_for(task, n, batch_size, hidden_size, precision, device, seed)
    return _measure_with_file(recipe, repeats)


def _measure_with_file(recipe: Recipe, repeats: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "examples.txt")
        examples = generate_dataset(recipe.task, recipe.data.n, COUNT, recipe.run.seed)
        formats.write(path, examples, recipe.task)
        open_file(path, recipe.task)
        steps = STEPS * repeats
        yield from _reading(path, recipe, repeats)
        # Steps on a file and steps on fresh examples are measured separately. If both ran in turn,
        # the batches of one stream would be made while a step on the other stream runs.
        stored = partial(step_on_file, path, recipe)
        yield from _waiting("examples of the file", stored, recipe, steps)
        fresh = partial(TrainingStep.on_fresh_examples, ptrnet_step, recipe)
        yield from _waiting("fresh examples", fresh, recipe, steps)


def _reading(path: str, recipe: Recipe, rounds: int) -> Iterator[Row]:
    """Measure three ways to read a file."""
    setups = {
        "text, line by line": partial(read_lines, path, recipe.task),
        "text, to a memory map": partial(build_memmap, path, recipe.task),
        "memory map, in batches": partial(read_batches, path, recipe),
    }
    sides = {name: Side(setup()) for name, setup in setups.items()}
    sides["bytes"] = Side(Path(path).read_bytes)
    measured = measure(setups, sides, rounds, "data, reading")
    for name in setups:
        yield measured.row(
            name,
            "data",
            name,
            count=COUNT,
            unit="examples",
            facts={
                "task": recipe.task.name,
                "n": recipe.data.n[0],
                "examples": COUNT,
                "bytes": Path(path).stat().st_size,
            },
            roofline_ms=measured.median("bytes"),
        )


def _waiting(
    examples: str, make_step: Callable[[], TrainingStep], recipe: Recipe, rounds: int
) -> Iterator[Row]:
    """Measure training steps on one kind of examples, and how long steps wait for examples."""
    step, units = make_step(), recipe.network.hidden_size
    title = f"data, steps on {examples}"
    measured = measure({"step": make_step}, {"step": Side(step)}, rounds, title, recipe.run.device)
    times = measured.times["step"].values()
    share = step.waiting_ms * len(times) / sum(times)
    yield measured.row(
        "step",
        "data",
        f"step, {units} units, {examples}",
        count=recipe.data.batch_size,
        unit="examples",
        facts={
            "task": recipe.task.name,
            "n": recipe.data.n[0],
            "batch_size": recipe.data.batch_size,
            "hidden_size": units,
            "waiting_ms": step.waiting_ms,
            "waiting_share": share,
        },
        note=f"waits {step.waiting_ms:.2f} ms for data, {share:.1%}",
    )


def read_lines(path: str, task: Task) -> Run:
    """Return a function that reads all lines, as `solve` and `evaluate` do."""
    return lambda: sum(1 for _ in formats.read(path, task))


def build_memmap(path: str, task: Task) -> Run:
    """Return a function that makes a memory map of a file, as the first training on a file does."""
    copy = path.replace(".txt", "-anew.txt")
    shutil.copyfile(path, copy)

    def run() -> None:
        shutil.rmtree(f"{copy}.packed", ignore_errors=True)
        open_file(copy, task)

    return run


def read_batches(path: str, recipe: Recipe) -> Run:
    """Return a function that makes the batches of one epoch from the memory map."""
    stream = _stream(path, recipe)
    return lambda: [stream.batch(k) for k in range(stream.batches_per_epoch)]


def step_on_file(path: str, recipe: Recipe) -> TrainingStep:
    """A training step on the batches of a file."""
    return TrainingStep(ptrnet_step(recipe), _stream(path, recipe), recipe.run.device)


def _stream(path: str, recipe: Recipe) -> DatasetStream:
    data = open_file(path, recipe.task)
    return DatasetStream(recipe.task, recipe.data.n, recipe.data.batch_size, recipe.run.seed, data)
