"""Measure the time until the first answer, and the time to import torch alone.

    python benchmarks/start.py

Each measurement starts a new process. The file system's cache is warm, and kernels are compiled.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path

from ptrnet_lab.bench.harness import Side, describe, interleaved, machine, ratio, spread, versions

ROUNDS = 15
CAPITALS = Path(__file__).parents[1] / "examples" / "capitals.csv"
COMMANDS = {
    "python alone": ["-c", ""],
    "import torch": ["-c", "import torch"],
    "ptrnet --help": ["-m", "ptrnet", "--help"],
    **{
        f"ptrnet solve {task}": ["-m", "ptrnet", "solve", task, "--random", str(n)]
        for task, n in {"hull": 45, "delaunay": 12, "tsp": 20, "sort": 15}.items()
    },
    "ptrnet solve hull capitals.csv": ["-m", "ptrnet", "solve", "hull", str(CAPITALS)],
    "ptrnet solve tsp capitals.csv": ["-m", "ptrnet", "solve", "tsp", str(CAPITALS)],
}


def main() -> None:
    """Print a row for each command."""
    print(describe(machine("cpu"), versions()))
    print("command                          s       times import torch")
    sides = {name: Side(partial(run, command)) for name, command in COMMANDS.items()}
    times = interleaved(sides, ROUNDS, "starts")
    for name, ms in times.items():
        times_torch = ratio(ms, times["import torch"])
        print(f"{name:<32} {spread(ms.values()).median / 1000:<7.2f} {times_torch:.2f}")


def run(arguments: list[str]) -> None:
    """Run a command in a new process of this interpreter."""
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
