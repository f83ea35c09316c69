"""Measure the time of single answers next to a busy process, for both orders of imports.

    python benchmarks/single_answers.py [COUNT]

Each order is a fresh process that answers COUNT hulls of 30 points, one after the other, while
another process keeps a core busy.
"""

import multiprocessing
import subprocess
import sys

COUNT = 1000
ORDERS = ("torch, ptrnet", "ptrnet, torch")
ANSWERS = """
import time
import {first}
import {second}
import numpy as np

solver = ptrnet.load("hull")
instances = np.random.default_rng(0).random(({count}, 30, 2))
solver.solve(instances[0])
times = []
for instance in instances:
    start = time.perf_counter()
    solver.solve(instance)
    times.append(1000 * (time.perf_counter() - start))
p50, p99 = np.percentile(times, [50, 99])
print(f"{{p50:8.1f}} {{p99:8.1f}} {{torch.get_num_threads():8}}")
"""


def main(count: int) -> None:
    """Print a row for each order of imports."""
    busy = multiprocessing.Process(target=keep_busy, daemon=True)
    busy.start()
    print(f"{'imports':<16} {'p50 ms':>8} {'p99 ms':>8} {'threads':>8}")
    for order in ORDERS:
        first, second = order.split(", ")
        code = ANSWERS.format(first=first, second=second, count=count)
        answered = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        print(f"{order:<16} {answered.stdout.decode().rstrip()}", flush=True)
    busy.terminate()


def keep_busy() -> None:
    """Keep a core busy until the process is terminated."""
    while True:
        sum(range(10**6))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else COUNT)
