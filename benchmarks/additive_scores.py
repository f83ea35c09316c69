"""The compiled additive scores against the plain formula: time forward and backward, memory.

    python benchmarks/additive_scores.py

In a process as PyTorch users have it: `ptrnet.runtime.tune()`, which keeps freed memory, halves
the plain formula's time, most of which goes into fresh pages, and hides the peak.
"""

import torch
from timing import machine, median_ms, peak_mb

from ptrnet.kernels.additive import cpu, factorised, reference

BATCH, ELEMENTS, STEPS = 128, 50, 13


def main() -> None:
    """Prints a row for each size and face."""
    print(machine())
    print(f"B={BATCH} N={ELEMENTS} M={STEPS}, forward and backward, float32")
    print("H     face        ms     ratio to reference   extra MB   times inputs and outputs")
    for units in (256, 512):
        keys = torch.randn(BATCH, ELEMENTS, units, requires_grad=True)
        queries = torch.randn(BATCH, STEPS, units, requires_grad=True)
        v = torch.randn(units, requires_grad=True)
        grad = torch.randn(BATCH, STEPS, ELEMENTS)
        tensors = (keys, queries, v)
        held = sum(2 * t.numel() for t in tensors) + 2 * grad.numel()  # values and gradients
        held_mb = 4 * held / 2**20
        first = None
        for face in (reference, factorised, cpu):

            def step(face=face, tensors=tensors, grad=grad):
                return torch.autograd.grad(face.additive_scores(*tensors), tensors, grad)

            ms = median_ms(step)
            first = first or ms
            extra = peak_mb(step)
            name = face.__name__.rsplit(".", 1)[1]
            print(
                f"{units:<5} {name:<11} {ms:<6.1f} {first / ms:<20.1f} {extra:<10.0f} "
                f"{extra / held_mb:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
