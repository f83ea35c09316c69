"""Lines a second of the authors' format: one by one, packed for training, and packed already.

`python benchmarks/read_examples.py` draws 50,000 hull examples of 5 to 50 points; `--count` says
otherwise. Processor seconds count all processes, wherever the machine was busy besides.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from joblib.externals.loky import get_reusable_executor
from timing import machine

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.generate import generate
from ptrnet.data.packed import packed

MILLION = 1_000_000


def measured(run: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds of a call, those of its finished processes among them."""
    before, start = os.times(), time.perf_counter()
    run()
    wall = time.perf_counter() - start
    get_reusable_executor().shutdown()  # only then are the other processes' seconds known
    after = os.times()
    return wall, sum(after[:4]) - sum(before[:4])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50_000)
    count = parser.parse_args().count
    task, folder = tasks.get("hull"), Path(tempfile.mkdtemp())
    try:
        name = str(folder / "hull.txt")
        formats.write(name, generate(task, range(5, 51), count, seed=1), task)
        print(f"{machine()}\n{count} lines, {Path(name).stat().st_size / 1e6:.0f} MB\n")
        print("| reader | lines/s | ratio | s for a million lines | processor s for them |")
        print("|---|---|---|---|---|")
        plain = 0.0
        for what, run in (
            ("line by line", lambda: sum(1 for _ in formats.read(name, task))),
            ("packed anew", lambda: packed(name, task)),
            ("packed already", lambda: packed(name, task)),
        ):
            wall, processor = measured(run)
            plain = plain or wall
            million = MILLION / count
            print(
                f"| {what} | {count / wall:,.0f} | {plain / wall:.1f} | {wall * million:.1f} "
                f"| {processor * million:.1f} |"
            )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
