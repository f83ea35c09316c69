"""A whole training step of the hull, data included, beside the roofline of the same machine.

    python benchmarks/training_step.py

The roofline is the time that the step's matrix products alone would take (encoder, decoder and
projections, forward and backward), at the rate of one large product of the same precision.
"""

from ptrnet import runtime

runtime.tune()

import torch  # noqa: E402
from timing import machine, median_ms, product_rate  # noqa: E402

from ptrnet import models, tasks  # noqa: E402
from ptrnet.data.stream import ExampleStream  # noqa: E402
from ptrnet.training.module import losses  # noqa: E402
from ptrnet.training.optimizers import optimizer  # noqa: E402
from ptrnet.training.recipe import Recipe  # noqa: E402

BATCH, ELEMENTS = 128, 50


def operations(units: int, elements: int, steps: int) -> float:
    """Of the step's products: an LSTM step is an `H x 4H` product, a projection `H x H`."""
    once = 2 * BATCH * units**2
    return 3 * once * (4 * (elements + steps) + (elements + 1) + steps)


def main() -> None:
    """Prints a row for each size and precision."""
    print(machine())
    print(f"hull, B={BATCH}, n={ELEMENTS}, AdamW, clipping, data included")
    print("H     precision   step ms   roofline ms   share of roofline   waiting for data ms")
    recipe, task = Recipe("hull"), tasks.get("hull")
    for units in (256, 512):
        for low, dtype in ((True, torch.bfloat16), (False, torch.float32)):
            torch.manual_seed(0)
            model = models.build("ptr-net", 2, 1, hidden_size=units)
            update = optimizer(recipe, model.parameters())
            batches = iter(ExampleStream(task, [ELEMENTS], BATCH, seed=0))
            lengths = []

            def step(model=model, update=update, batches=batches, low=low, lengths=lengths):
                batch = next(batches)
                lengths.append(batch.targets.shape[1])
                with torch.autocast("cpu", torch.bfloat16, enabled=low):
                    loss, _ = losses(model, batch)
                update.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
                update.step()

            ms = median_ms(step, 40)
            waiting = median_ms(lambda batches=batches: next(batches), 2)
            steps = sum(lengths) / len(lengths)
            floor = 1000 * operations(units, ELEMENTS, steps) / product_rate(dtype)
            name = str(dtype).removeprefix("torch.")
            print(
                f"{units:<5} {name:<11} {ms:<9.1f} {floor:<13.1f} {floor / ms:<19.0%} "
                f"{waiting:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
