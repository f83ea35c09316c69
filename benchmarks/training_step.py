"""A whole training step of the hull, data included, beside the roofline of the same machine.

    python benchmarks/training_step.py

The roofline is the time that the step's matrix products alone would take (encoder, decoder and
projections, forward and backward), at the rate of one large product of the same precision.
"""

from ptrnet import runtime

runtime.tune()

import statistics  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import NamedTuple  # noqa: E402

import torch  # noqa: E402
from naive import NaivePtrNet  # noqa: E402
from timing import machine, median_ms, product_rate  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from ptrnet import models, tasks  # noqa: E402
from ptrnet.data.stream import ExampleStream  # noqa: E402
from ptrnet.training.losses import losses  # noqa: E402
from ptrnet.training.optimizers import optimizer  # noqa: E402
from ptrnet.training.recipe import Recipe  # noqa: E402
from ptrnet.types import Batch  # noqa: E402

BATCH, ELEMENTS = 128, 50


def operations(units: int, elements: int, steps: int) -> float:
    """Of the step's products: an LSTM step is an `H x 4H` product, a projection `H x H`."""
    once = 2 * BATCH * units**2
    return 3 * once * (4 * (elements + steps) + (elements + 1) + steps)


class Measured(NamedTuple):
    """Medians over the steps, in milliseconds, and the mean number of decoder steps."""

    step: float
    waiting: float
    decoder_steps: float


def measure(model: nn.Module, loss_of: Callable[[Batch], Tensor], repeats: int) -> Measured:
    """Whole training steps: next batch, forward, backward, clipping, update."""
    recipe = Recipe("hull")
    update = optimizer(recipe, model.parameters())
    batches = iter(ExampleStream(tasks.get("hull"), [ELEMENTS], BATCH, seed=0))
    lengths, waits = [], []

    def step() -> None:
        start = time.perf_counter()
        batch = next(batches)
        waits.append(1000 * (time.perf_counter() - start))
        lengths.append(batch.targets.shape[1])
        update.zero_grad()
        loss_of(batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        update.step()

    ms = median_ms(step, repeats)
    return Measured(ms, statistics.median(waits), statistics.mean(lengths))


def fast(units: int, dtype: torch.dtype) -> Measured:
    """The library's step, with products in `dtype`."""
    model = models.build("ptr-net", 2, 1, hidden_size=units)

    def loss_of(batch: Batch) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            return losses(model, batch)[0]

    return measure(model, loss_of, 40)


def naive(units: int) -> Measured:
    """The usual way's step, in float32."""
    model = NaivePtrNet(2, units)

    def loss_of(batch: Batch) -> Tensor:
        log_probs = model.log_probs(batch.inputs, batch.targets)
        likelihood = log_probs.gather(2, batch.targets[..., None])[..., 0]
        real = torch.arange(batch.targets.shape[1]) < batch.target_lengths[:, None]
        return -likelihood[real].mean()

    return measure(model, loss_of, 7)


def main() -> None:
    """Prints a row for each size and precision."""
    print(machine())
    print(f"hull, B={BATCH}, n={ELEMENTS}, AdamW, clipping, data included")
    print("H     step       ms     times naive   roofline ms   share of it   waiting for data ms")
    for units in (256, 512):
        torch.manual_seed(0)
        usual = naive(units)
        print(f"{units:<5} naive      {usual.step:<6.0f} 1.0", flush=True)
        for dtype in (torch.bfloat16, torch.float32):
            ours = fast(units, dtype)
            work = operations(units, ELEMENTS, ours.decoder_steps)
            floor = 1000 * work / product_rate(dtype)
            print(
                f"{units:<5} {str(dtype).removeprefix('torch.'):<10} {ours.step:<6.1f} "
                f"{usual.step / ours.step:<13.1f} {floor:<13.1f} {floor / ours.step:<13.0%} "
                f"{ours.waiting:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
