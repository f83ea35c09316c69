"""Write the table of scores in README.md, from `results/MODEL.json`.

    python benchmarks/readme_scores.py

The table replaces the text between the two marks in README.md. A test compares both.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from ptrnet.metrics.interval import Measure

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- scores: benchmarks/readme_scores.py -->\n", "<!-- end of scores -->\n"
SIZES = {"hull": (10, 50, 500), "delaunay": (10, 15), "tsp": (20, 50, 100), "sort": (10, 25)}
WHAT = {
    "hull": "convex hull, exact",
    "delaunay": "Delaunay triangulation, exact",
    "tsp": "tour, longer than the shortest",
    "sort": "sorting, exact",
}
# The best that the papers have in one model for several n, in percent: C and W (hulls), V's section
# 4.3 (a model for each n), V's table 2 beside the shortest of its instances, and Orders Matter.
PAPERS = {
    ("hull", 10): "93.4",
    ("hull", 50): "78.2",
    ("hull", 500): "1.3",
    ("delaunay", 10): "22.6",
    ("tsp", 20): "1.3",
    ("tsp", 50): "34.6",
    ("sort", 10): "57",
}


def rows_of(model: str) -> dict[int, Measure]:
    """The metric of constrained greedy decoding for each n."""
    rows = json.loads((ROOT / "results" / f"{model}.json").read_text())["rows"]
    return {row["n"]: Measure(**row["constrained"]) for row in rows}


def lines() -> Iterator[str]:
    """The lines of the table."""
    yield "| in percent, with 95% intervals | n | shipped model | our Ptr-Net | papers |"
    yield "|---|---|---|---|---|"
    for task, sizes in SIZES.items():
        best, ptr_net = rows_of(task), rows_of(f"{task}-ptr-net")
        for n in sizes:
            former = ptr_net[n].value_and_interval(1, 100)[0] if n in ptr_net else ""
            digits = 2 if task == "tsp" else 1
            cells = [WHAT[task], str(n), best[n].text(digits, 100)]
            yield f"| {' | '.join([*cells, former, PAPERS.get((task, n), '')])} |"


def main() -> None:
    """Write the table into README.md."""
    readme = ROOT / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    _, after = rest.split(END)
    readme.write_text(
        "".join([before, BEGIN, "\n", *(f"{x}\n" for x in lines()), "\n", END, after])
    )


if __name__ == "__main__":
    main()
