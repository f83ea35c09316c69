"""How the shipped `hull-ptr-net` answers large sets, by decoder; writes results/decoders.md.

    python tools/compare_decoders.py --machine "2 cores of an AMD EPYC" --commit COMMIT

Plain greedy decoding, incremental decoding (W 3) by window, and test-time augmentation by several
views, all under the constraint. Hulls are labelled by Qhull.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.spatial import ConvexHull

import ptrnet
from ptrnet.types import Example

SEED = 20_260_200
COUNTS = {100: 1000, 200: 1000, 500: 500}
WINDOWS = (1, 5, 10, 25, 50)
NUM_VIEWS = (4, 16)


def rows() -> Iterator[str]:
    """The table."""
    model = ptrnet.load("hull-ptr-net")
    decoders = [("greedy", ptrnet.Greedy(), 1)]
    decoders += [(f"incremental, w = {w}", ptrnet.Incremental(w), 1) for w in WINDOWS]
    decoders += [(f"greedy, {k} views", ptrnet.Greedy(), k) for k in NUM_VIEWS]
    yield "| n | instances | decoder | accuracy | simple | area | seconds |"
    yield "|---|---|---|---|---|---|---|"
    for n, count in COUNTS.items():
        points = np.random.default_rng([SEED, n]).random((count, n, 2))
        known = [Example(p, ConvexHull(p).vertices.astype(np.int64)) for p in points]
        for name, decoder, views in decoders:
            began = time.perf_counter()
            answers = [e.outputs for e in model.predict(known, decoder, augment=views)]
            seconds = time.perf_counter() - began
            measures = model.task.measure(known, [a for a in answers if a is not None])
            cells = " | ".join(measures[key].text(1, 100) for key in ("accuracy", "simple", "area"))
            yield f"| {n} | {count:,} | {name} | {cells} | {seconds:.1f} |"


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    for fact in ("machine", "commit"):
        parser.add_argument(f"--{fact}", required=True)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ptrnet.OutOfDistributionWarning)
    lines = [
        "# The shipped hull-ptr-net by decoder",
        "",
        f"`python tools/compare_decoders.py`, seed {SEED}, commit {arguments.commit}, on",
        f"{arguments.machine}. Percent, with 95% intervals; the model was",
        "trained on 5 to 50 points. All under the constraint.",
        "",
    ]
    for line in rows():
        print(line, flush=True)
        lines.append(line)
    Path("results/decoders.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
