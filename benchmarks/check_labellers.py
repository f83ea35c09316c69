"""Check the labellers of tours against independent results, and write results/labellers.md.

    python benchmarks/check_labellers.py --machine "2 cores of an AMD EPYC" --commit COMMIT

Brute force and dynamic programming check the exact labellers. Table 2 of the paper (V) checks A1 to
A3. This takes a quarter of an hour on two cores, mostly for dynamic programming at n = 20.
`ptrnet bench label` measures how fast the labellers are.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np

from ptrnet import labellers
from ptrnet.geometry import distances
from ptrnet.metrics import Moments
from ptrnet.parallel import ordered_map
from ptrnet.types import Floats, Indices

SEED = 20_260_100
PIECE = 25  # instances that a process labels at a time
TABLE_2 = {  # V: n, A1, A2, A3
    5: (2.18, 2.12, 2.12),
    10: (3.07, 2.87, 2.87),
    20: (4.24, 3.86, 3.85),
    50: (6.46, 5.84, 5.79),
}


def instances(n: int, count: int) -> Floats:
    """Draw random instances, the same in every run."""
    return np.random.default_rng([SEED, n]).random((count, n, 2))


def lengths(inputs: Floats, tours: Indices) -> Floats:
    """Return the lengths of closed tours `(B, n)`."""
    path = np.take_along_axis(inputs, tours[..., None], 1)
    return distances.between(path, np.roll(path, -1, 1)).sum(-1)


def labelled(name: str, inputs: Floats) -> Floats:
    """Return the lengths of a labeller's tours."""
    return lengths(inputs, labellers.get(name)(inputs).indices)


def shared(work: Callable[[Floats], Floats], inputs: Floats) -> Floats:
    """Return the results of `work` for all instances, computed on all cores."""
    pieces = [inputs[k : k + PIECE] for k in range(0, len(inputs), PIECE)]
    return np.concatenate(list(ordered_map(work, pieces, -1)))


def brute_force(inputs: Floats) -> Floats:
    """Return the length of the shortest tour, by brute force."""
    one_way = (rest for rest in permutations(range(1, inputs.shape[1])) if rest[0] < rest[-1])
    orders = np.array([(0, *rest) for rest in one_way])
    next_cities = np.roll(orders, -1, 1)
    return np.array([dist[orders, next_cities].sum(1).min() for dist in distances.matrix(inputs)])


def exactness() -> Iterator[str]:
    """Return a table of the largest differences from brute force and dynamic programming."""
    yield "| labeller | oracle | n | instances | largest difference of lengths |"
    yield "|---|---|---|---|---|"
    for n in range(3, 10):
        inputs = instances(n, 2000)
        oracle = shared(brute_force, inputs)
        for name in ("held-karp", "exact"):
            apart = np.abs(labelled(name, inputs) / oracle - 1).max()
            yield f"| {name} | brute force | {n} | {len(inputs):,} | {apart:.0e} |"
    for n in (12, 16, 20):
        inputs = instances(n, 1000)
        oracle = shared(partial(labelled, "held-karp"), inputs)
        apart = np.abs(labelled("exact", inputs) / oracle - 1).max()
        yield f"| exact | held-karp | {n} | {len(inputs):,} | {apart:.0e} |"


def table_2() -> Iterator[str]:
    """Return a table that compares mean lengths with those of V's Table 2."""
    yield "| n | labeller | mean length (95%) | Table 2 | difference | above the shortest |"
    yield "|---|---|---|---|---|---|"
    for n, columns in TABLE_2.items():
        inputs = instances(n, 10_000)
        best = shared(partial(labelled, "exact"), inputs)
        yield f"| {n} | exact | {Moments.of(best).measure().text(3)} | | | |"
        for name, paper in zip(("a1", "a2", "a3"), columns, strict=True):
            tour_lengths = shared(partial(labelled, name), inputs)
            m = Moments.of(tour_lengths).measure()
            cells = f"{m.text(3)} | {paper}"
            cells = f"{cells} | {m.value / paper - 1:+.2%} | {(tour_lengths / best - 1).mean():.2%}"
            yield f"| {n} | {name} | {cells} |"


def structured() -> Iterator[tuple[str, Floats]]:
    """Return instances whose proofs are hard because of their structure, not their size."""
    rng = np.random.default_rng([SEED, 0])
    yield "30 on a line", np.linspace(0, 1, 30)[:, None] * [[1 / 3, 1 / 7]]
    yield "10 five times each", rng.random((10, 2)).repeat(5, 0)
    for width in (1e-2, 1e-6):
        spots = np.arange(2.0).repeat(15)[:, None]
        yield f"two clusters, {width:.0e} wide", spots + width * rng.random((30, 2))
    for rows, columns in ((5, 5), (6, 6), (7, 7), (7, 8), (8, 8)):
        grid = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), -1).reshape(-1, 2)
        yield f"a grid of {rows} x {columns}", grid.astype(float)


def structure() -> Iterator[str]:
    """Return a table that says which structured instances `exact` proves."""
    yield "| cities | n | length | proved |"
    yield "|---|---|---|---|"
    for name, cities in structured():
        (tours, _), proved = labellers.label_with_proof("exact", cities[None])
        length = lengths(cities[None], tours)[0]
        yield f"| {name} | {len(cities)} | {length:.6g} | {'yes' if proved[0] else 'no'} |"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    for fact in ("machine", "commit"):
        parser.add_argument(f"--{fact}", required=True)
    arguments = parser.parse_args()
    facts = f"seed {SEED}, commit {arguments.commit}, on {arguments.machine}"
    lines = [
        "# Labellers of tours: are they exact?",
        "",
        f"`python benchmarks/check_labellers.py`, {facts}.",
        "The cities are uniform in the unit square. The comparison with Table 2 uses 10,000",
        "instances of each size.",
    ]
    parts = {"Exactness": exactness, "Structure": structure, "The paper's Table 2": table_2}
    for title, part in parts.items():
        lines += ["", f"## {title}", ""]
        for line in part():
            print(line, flush=True)
            lines.append(line)
    Path("results/labellers.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
