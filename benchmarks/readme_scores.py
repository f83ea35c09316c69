"""Write the table of results in README.md, from files of results/, such as quality.md.

    python benchmarks/readme_scores.py

The table replaces the text between the two marks in README.md. A test compares both.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from ptrnet.metrics import Measure

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- scores: benchmarks/readme_scores.py -->\n", "<!-- end of scores -->\n"
QUESTIONS = {  # by section of results/real-data.md
    "yogurt": "which yogurt a new household buys",
    "car": "which car",
    "cracker": "which cracker a new household buys",
    "swissmetro": "how a new person travels",
    "fishing": "which way to fish",
    "rank": "ranking of documents",
}
METRICS = ("accuracy", "log-likelihood", "NDCG@10")
LOGITS = ("conditional logit", "multinomial logit")
LIGHTGBM = ("LightGBM, xendcg", "LightGBM, lambdarank", "LightGBM, multiclass")
SIZES = {"hull": (50, 500), "delaunay": (10,), "tsp": (20, 50, 100), "sort": (25,)}
TASKS = {
    "hull": ("convex hull of {} points", "exact, %"),
    "delaunay": ("Delaunay triangulation of {} points", "exact, %"),
    "tsp": ("tour of {} cities, improved / network alone", "longer than the shortest, %"),
    "sort": ("order of {} numbers", "exact, %"),
}
# The best number in the papers of one model for several n, in percent: C and W (hulls), V's section
# 4.3 (a model for each n), and V's Table 2 compared with the shortest tours of its instances.
PAPERS = {
    ("hull", 50): "78.2",
    ("hull", 500): "1.3",
    ("delaunay", 10): "22.6",
    ("tsp", 20): "1.3",
    ("tsp", 50): "34.6",
}


PAGES = {  # by section of results/reading-order.md
    "dp-bench": "reading order of modern pages",
    "ocr-d": "reading order of prints of 1500 to 1900",
}
RULES = {"xy-cut": "XY-cut", "docling": "docling"}


def section(file: str, title: str) -> list[dict[str, str]]:
    """Return the table of a section in a file of results/. Columns *ahead* are left out."""
    text = (ROOT / "results" / file).read_text().split(f"\n## {title}")[1]
    table = [line for line in text.split("\n## ")[0].splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in table]
    return [{h: c for h, c in zip(head, row, strict=True) if h != "ahead"} for row in rows]


def real_rows() -> Iterator[str]:
    """Yield the rows of real data sets."""
    for name, question in QUESTIONS.items():
        table = {row["method"]: row for row in section("real-data.md", f"{name}: ")}
        metrics = [m for m in METRICS if m in table["ptrnet"]]
        values = {
            method: " / ".join(row[m] for m in metrics if row[m]) for method, row in table.items()
        }
        others = [f"{logit} {values[logit]}" for logit in LOGITS if logit in table]
        others.append(f"LightGBM {max(values[method] for method in LIGHTGBM if method in table)}")
        cells = [question, " / ".join(metrics), values["ptrnet"], ", ".join(others)]
        yield f"| {' | '.join(cells)} |"


def page_rows() -> Iterator[str]:
    """Yield the rows of real pages whose boxes have no labels: values without intervals."""
    for name, question in PAGES.items():
        table = {row["method"]: row for row in section("reading-order.md", f"{name}\n")}
        scores = {
            method: " / ".join(row[column].split(" ")[0] for column in ("exact", "edit distance"))
            for method, row in table.items()
        }
        others = ", ".join(f"{title} {scores[rule]}" for rule, title in RULES.items())
        yield f"| {question} | exact / edit distance | {scores['ptrnet']} | {others} |"


def measures(model: str) -> dict[int, Measure]:
    """Return the metric of constrained greedy decoding for each n."""
    rows = json.loads((ROOT / "results" / f"{model}.json").read_text())["rows"]
    return {row["n"]: Measure(**row["constrained"]) for row in rows}


def improved(n: int) -> str:
    """Return the gap of the model `tsp` after improvement, from results/quality.md."""
    text = (ROOT / "results" / "quality.md").read_text().split("\n## tsp\n")[1]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in text.splitlines()]
    (gap,) = (row[-1] for row in rows if row[0] == str(n) and row[2:3] == ["`tsp`"])
    return gap


def shipped_rows() -> Iterator[str]:
    """Yield the rows of the shipped models."""
    for task, sizes in SIZES.items():
        best, ptr_net = measures(task), measures(f"{task}-ptr-net")
        question, measure = TASKS[task]
        for n in sizes:
            others = [f"Ptr-Net {ptr_net[n].value_and_interval(1, 100)[0]}"]
            if paper := PAPERS.get((task, n)):
                others.append(f"papers {paper}")
            score = best[n].text(2 if task == "tsp" else 1, 100)
            if task == "tsp":
                score = f"{improved(n)} / {score}"
            yield f"| {question.format(n)} | {measure} | {score} | {', '.join(others)} |"


def lines() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| question | measure | ptrnet | others |"
    yield "|---|---|---|---|"
    yield from page_rows()
    yield from real_rows()
    yield from shipped_rows()


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
