"""Measure the training step of every model, relative to a Ptr-Net with the same options.

    python benchmarks/variants.py

The models take steps in turn, so that other work on the machine slows all of them equally. The
ratio is the median over the rounds.
"""

from ptrnet import runtime

runtime.tune()

from collections.abc import Callable  # noqa: E402

from ptrnet import models  # noqa: E402
from ptrnet.data.streams import FreshStream  # noqa: E402
from ptrnet.training.recipe import Recipe  # noqa: E402
from ptrnet_lab.bench.harness import Side, describe, interleaved, machine, ratio, spread, versions  # noqa: E402
from ptrnet_lab.bench.train import ptrnet_step  # noqa: E402

ROUNDS = 7
FREE_RUNNING = ("soft-ptr-net", "hard-ptr-net", "multi-ptr-net")
OTHERS = [name for name in models.names() if name not in ("ptr-net", *FREE_RUNNING)]
ROWS = [
    *((name, {}) for name in ("ptr-net", *OTHERS)),
    *((name, {"teacher_forcing": forced}) for name in FREE_RUNNING for forced in (True, False)),
    ("ptr-net", {"score": "dot"}),
    ("ptr-net", {"score": "general"}),
    ("ptr-net", {"cell": "gru"}),
    ("ptr-net", {"bidirectional": True}),
    ("ptr-net", {"layers": 2}),
]


def label(name: str, settings: dict[str, object]) -> str:
    options = ", ".join(f"{key} {value}" for key, value in settings.items())
    return f"{name:<18} {options}"


def stepping(recipe: Recipe) -> Callable[[], None]:
    """Return a function that takes a training step on the next batch."""
    stream = FreshStream(recipe.task, recipe.data.n, recipe.data.batch_size, recipe.run.seed)
    batches = iter([stream.batch(k) for k in range(ROUNDS + 1)])
    step = ptrnet_step(recipe)
    return lambda: step(next(batches))


def main() -> None:
    """Print a row for each model and option."""
    print(describe(machine("cpu"), versions()))
    for n in (10, 50):
        table = {"task": "hull", "n": str(n), "device": "cpu"}
        sides = {
            label(*row): Side(stepping(Recipe.from_table({**table, "model": row[0], **row[1]})))
            for row in ROWS
        }
        times = interleaved(sides, ROUNDS, f"variants, n={n}")
        first = times[label(*ROWS[0])]
        print(f"hull, n={n}, B=128, 256 units, AdamW, clipping, data not included")
        print(f"{'model and options':<45} times ptr-net   ms")
        for name, ms in times.items():
            print(f"{name:<45} {ratio(ms, first):<15.2f} {spread(ms.values()).median:.1f}")


if __name__ == "__main__":
    main()
