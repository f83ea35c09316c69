"""The training step of every model, as a multiple of the Ptr-Net's of the same options.

    python benchmarks/variants.py

Steps of the models are taken in turn, so that a busy machine slows all of them alike; the ratio
is the median over the rounds.
"""

from ptrnet import runtime

runtime.tune()

import statistics  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402

import torch  # noqa: E402
from timing import machine  # noqa: E402

from ptrnet import models, tasks  # noqa: E402
from ptrnet.data.stream import ExampleStream  # noqa: E402
from ptrnet.training.losses import losses  # noqa: E402
from ptrnet.training.optimizers import optimizer  # noqa: E402
from ptrnet.training.recipe import Recipe  # noqa: E402

BATCH, UNITS, ROUNDS = 128, 256, 7
OWN = ("soft-ptr-net", "hard-ptr-net", "multi-ptr-net")
OTHERS = [name for name in models.names() if name not in ("ptr-net", *OWN)]
ROWS = [
    *((name, {}) for name in ("ptr-net", *OTHERS)),
    *((name, {"train_feed": feed}) for name in OWN for feed in ("truth", "own")),
    ("ptr-net", {"score": "dot"}),
    ("ptr-net", {"score": "general"}),
    ("ptr-net", {"cell": "gru"}),
    ("ptr-net", {"bidirectional": True}),
    ("ptr-net", {"layers": 2}),
]


def stepper(name: str, settings: dict[str, object], n: int) -> Callable[[int], float]:
    """A function that takes the training step on batch k, and gives its seconds."""
    one_n = {"n": n} if "n" in models.setting_names(name) else {}
    model = models.build(name, 2, 1, hidden_size=UNITS, **one_n, **settings)
    recipe = Recipe("hull")
    update = optimizer(recipe, model.parameters())
    batches = ExampleStream(tasks.get("hull"), [n], BATCH, seed=0)
    bfloat16 = torch.cpu._is_avx512_bf16_supported()

    def step(k: int) -> float:
        batch = batches.batch(k)
        start = time.perf_counter()
        update.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            loss, _ = losses(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        update.step()
        return time.perf_counter() - start

    return step


def main() -> None:
    """Prints a row for each model and option."""
    print(machine())
    for n in (10, 50):
        print(f"hull, n={n}, B={BATCH}, {UNITS} units, AdamW, clipping, data not included")
        print("model              options                    times ptr-net   ms")
        steppers = [stepper(name, settings, n) for name, settings in ROWS]
        rounds = [[step(k) for step in steppers] for k in range(ROUNDS + 1)][1:]
        for row, (name, settings) in enumerate(ROWS):
            ratio = statistics.median(r[row] / r[0] for r in rounds)
            ms = 1000 * statistics.median(r[row] for r in rounds)
            shown = ", ".join(f"{key} {value}" for key, value in settings.items())
            print(f"{name:<18} {shown:<26} {ratio:<15.2f} {ms:.1f}", flush=True)


if __name__ == "__main__":
    main()
