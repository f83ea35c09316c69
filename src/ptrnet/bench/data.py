"""Reading examples from a file, and how long a training step waits for them.

The file is text in the authors' format. The roofline is the time of reading its bytes alone.
"""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from ptrnet import tasks
from ptrnet.bench import train
from ptrnet.bench.memory import Work, peaks
from ptrnet.bench.row import Row
from ptrnet.bench.timing import Side, Times, interleaved, spread
from ptrnet.data import formats
from ptrnet.data.generate import generate
from ptrnet.data.streams.file_stream import FileStream
from ptrnet.data.streams.memmap import open_memmap
from ptrnet.progress import track
from ptrnet.training.recipe import Recipe

COUNT = 10_000  # examples in the file
STEPS = 10  # for each of the repeats, as a step is soon done

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
    """Rows for reading, and for steps of a small network. Raises InputError as `train.rows`."""
    recipe = train.recipe_of(task, n, batch_size, hidden_size, precision, device, seed)
    return _measured(recipe, repeats)


def _measured(recipe: Recipe, repeats: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder:
        name = str(Path(folder) / "examples.txt")
        kind = tasks.get(recipe.task)
        examples = generate(kind, [int(recipe.n)], COUNT, recipe.seed)
        formats.write(name, track(examples, "writing a file", COUNT), kind)
        open_memmap(name, kind)
        reads: dict[str, Work] = {
            "text, line by line": partial(line_by_line, name, recipe.task),
            "text, packed for training": partial(anew, name, recipe.task),
            "packed, in batches": partial(in_batches, name, recipe),
        }
        steps: dict[str, Work] = {
            "of the file": partial(from_file, name, recipe),
            "fresh": partial(fresh, recipe),
        }
        held = peaks({**reads, **steps}, "data")
        yield from _reading(name, reads, recipe, repeats, held)
        yield from _waiting(steps, recipe, repeats, held)


def _reading(
    name: str,
    reads: dict[str, Work],
    recipe: Recipe,
    repeats: int,
    held: dict[str, float],
) -> Iterator[Row]:
    sides = {what: Side(make()) for what, make in reads.items()}
    sides["bytes"] = Side(Path(name).read_bytes)
    times = interleaved(sides, repeats, "data, reading")
    floor = spread(times.pop("bytes").values()).median
    size = Path(name).stat().st_size
    for what, found in times.items():
        yield Row(
            what="data",
            name=what,
            time=spread(found.values()),
            count=COUNT,
            unit="examples",
            facts={"task": recipe.task, "n": int(recipe.n), "examples": COUNT, "bytes": size},
            roofline_ms=floor,
            peak_mb=held[what],
        )


def _waiting(
    steps: dict[str, Work], recipe: Recipe, repeats: int, held: dict[str, float]
) -> Iterator[Row]:
    """One kind of batches after the other: in turn, one would be made while the other trains."""
    for what, make in steps.items():
        step = make()
        assert isinstance(step, train.WholeStep)
        title = f"data, steps on {what} examples"
        times: Times = interleaved({"": Side(step)}, STEPS * repeats, title, recipe.device)[""]
        waiting = step.waiting
        share = waiting * len(times) / sum(times.values())
        yield Row(
            what="data",
            name=f"step, {recipe.hidden_size} units, examples {what}",
            time=spread(times.values()),
            count=recipe.batch_size,
            unit="examples",
            facts={
                "task": recipe.task,
                "n": int(recipe.n),
                "batch_size": recipe.batch_size,
                "hidden_size": recipe.hidden_size,
                "waiting_ms": waiting,
                "waiting_share": share,
            },
            peak_mb=held[what],
            note=f"waits {waiting:.2f} ms for data, {share:.1%}",
        )


def line_by_line(name: str, task: str) -> Run:
    """As `solve` and `evaluate` read."""
    return lambda: sum(1 for _ in formats.read(name, tasks.get(task)))


def anew(name: str, task: str) -> Run:
    """As the first training on a file reads it; each time a file that was not packed before."""
    other = name.replace(".txt", "-anew.txt")
    shutil.copyfile(name, other)

    def run() -> None:
        shutil.rmtree(f"{other}.packed", ignore_errors=True)
        open_memmap(other, tasks.get(task))

    return run


def in_batches(name: str, recipe: Recipe) -> Run:
    """As a training reads what is packed: all examples once, in this thread."""
    stream = _stream(name, recipe)
    return lambda: [stream.batch(k) for k in range(stream.batches_per_epoch)]


def from_file(name: str, recipe: Recipe) -> train.WholeStep:
    """A training step on the batches of a file."""
    return train.WholeStep(train.ours(recipe), _stream(name, recipe), recipe.device)


def fresh(recipe: Recipe) -> train.WholeStep:
    """A training step on batches drawn and labelled as it goes."""
    return train.alone(train.ours, recipe)


def _stream(name: str, recipe: Recipe) -> FileStream:
    task = tasks.get(recipe.task)
    return FileStream(name, task, [int(recipe.n)], recipe.batch_size, recipe.seed)
