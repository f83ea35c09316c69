"""Compare the additive scores on a GPU: Triton's kernel, PyTorch, and compiled PyTorch.

    python benchmarks/gpu_scores.py

For forward and backward together, prints the time with launches, the time of the kernels alone, and
the peak memory in addition to the inputs.
"""

import sys
from importlib.util import find_spec

import torch
from torch.profiler import ProfilerActivity, profile

from ptrnet.errors import PtrnetError
from ptrnet.kernels.additive_formula import chunked_scores, naive_scores
from ptrnet_lab.bench.harness import Side, describe, interleaved, machine, ratio, spread, versions

BATCH, UNITS, ROUNDS, CALLS = 128, 512, 15, 10
SIZES = ((50, 13), (200, 20), (200, 200))


def main() -> None:
    """Print a row for each size and implementation."""
    if not (torch.cuda.is_available() and find_spec("triton")):
        raise PtrnetError("benchmarks/gpu_scores.py needs a GPU: torch and triton see none here")
    import triton

    from ptrnet.kernels.additive_gpu import triton_scores

    print(f"{describe(machine('cuda'), versions())}, triton {triton.__version__}")
    print(f"B={BATCH} H={UNITS}, forward and backward, float32")
    print("N     M     face         ms       ratio to reference   GPU ms   ratio   peak MB")
    faces = {
        "gpu": triton_scores,
        "reference": naive_scores,
        "compiled": torch.compile(naive_scores, dynamic=False),
        "chunked": chunked_scores,
    }
    for n, m in SIZES:
        tensors = [torch.randn(s, device="cuda") for s in ((BATCH, n, UNITS), (BATCH, m, UNITS))]
        tensors = [t.requires_grad_() for t in (*tensors, torch.randn(UNITS, device="cuda"))]
        grad = torch.randn(BATCH, m, n, device="cuda")
        steps, peaks, alone = {}, {}, {}
        for name, face in faces.items():

            def step(face=face, tensors=tensors, grad=grad):
                torch.autograd.grad(face(*tensors), tensors, grad)

            try:
                peaks[name] = peak_mb(step)
                alone[name] = kernels_ms(step)
            except torch.OutOfMemoryError:
                print(f"{n:<5} {m:<5} {name:<12} out of memory", flush=True)
                continue
            steps[name] = Side(step)
        times = interleaved(steps, ROUNDS, f"scores, n={n}", "cuda")
        for name, ms_by_round in times.items():
            faster = faster_alone = "-"
            if "reference" in times:
                faster = f"{ratio(times['reference'], ms_by_round):.1f}"
                faster_alone = f"{alone['reference'] / alone[name]:.1f}"
            ms = spread(ms_by_round.values()).median
            print(
                f"{n:<5} {m:<5} {name:<12} {ms:<8.2f} {faster:<20} "
                f"{alone[name]:<8.3f} {faster_alone:<7} {peaks[name]:.0f}",
                flush=True,
            )


def peak_mb(step) -> float:
    """Return the GPU memory that a call needs in addition to the memory in use before."""
    step()  # compiles
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def kernels_ms(step) -> float:
    """Return the time of a call's kernels on the GPU, without the time to launch them."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiled:
        for _ in range(CALLS):
            step()
        torch.cuda.synchronize()
    return sum(event.self_device_time_total for event in profiled.key_averages()) / CALLS / 1000


if __name__ == "__main__":
    try:
        main()
    except PtrnetError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
