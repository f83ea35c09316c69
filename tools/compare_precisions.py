"""Trainings in bfloat16 and in float32, of the same seeds; writes results/precision.md.

    python tools/compare_precisions.py runs/precision --machine "2 cores of an AMD EPYC" \
        --commit COMMIT

Two trainings go side by side, one core each. All of it can be stopped and started again.
"""

import argparse
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compare_models import COUNT, UNITS, N, examples, run

import ptrnet

STEPS, SEEDS = 5000, (1, 2, 3)
PRECISIONS = ("bfloat16", "float32")


def command(precision: str, seed: int, folder: Path) -> list[str]:
    """One training."""
    words = f"hull --n {N} --hidden-size {UNITS} --steps {STEPS} --valid-batches 0".split()
    chosen = ["--precision", precision, "--seed", str(seed), "--output", str(folder)]
    return ["ptrnet", "train", *words, *chosen]


def main() -> None:
    """Trains, measures and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    for fact in ("machine", "commit"):
        parser.add_argument(f"--{fact}", required=True)
    arguments = parser.parse_args()
    trainings = [(p, s, arguments.runs / f"{p}-{s}") for s in SEEDS for p in PRECISIONS]
    with ThreadPoolExecutor(os.cpu_count()) as lanes:
        for done in [lanes.submit(run, command(*t), OMP_NUM_THREADS="1") for t in trainings]:
            done.result()
    known = examples("hull")
    accuracies = {}
    for precision, seed, folder in trainings:
        solver = ptrnet.load(folder)
        answers = [e.outputs for e in solver.predict(known, constrained=False)]
        accuracies[precision, seed] = solver.task.measure(known, answers)["accuracy"]
    lines = [
        "# Training in bfloat16 and in float32",
        "",
        f"`python tools/compare_precisions.py`, commit {arguments.commit}, on",
        f"{arguments.machine}. Hull, n = {N}, {UNITS} units, {STEPS:,} steps of 128 fresh",
        "examples, the defaults of `ptrnet train` otherwise. Accuracy in percent of",
        f"{COUNT:,} instances, free greedy decoding, with 95% intervals of these instances; in a",
        "row the weights to start from and the examples are the same.",
        "",
        "| seed | bfloat16 | float32 |",
        "|---|---|---|",
    ]
    for seed in SEEDS:
        cells = " | ".join(accuracies[precision, seed].text(1, 100) for precision in PRECISIONS)
        lines.append(f"| {seed} | {cells} |")
    means = [sum(accuracies[p, s].value or 0 for s in SEEDS) / len(SEEDS) for p in PRECISIONS]
    lines.append(f"| mean | {' | '.join(f'{100 * mean:.1f}' for mean in means)} |")
    Path("results/precision.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
