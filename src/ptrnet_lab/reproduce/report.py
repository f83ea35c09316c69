"""A table of results as Markdown: our numbers next to the paper's, and how to reproduce them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ptrnet.files import atomic_path
from ptrnet.training.run_card import markdown_table
from ptrnet_lab.reproduce import records, tables
from ptrnet_lab.reproduce.records import Record
from ptrnet_lab.reproduce.tables import LINES, Row, Table

TITLES = {"paper": "the paper's regime", "ours": "ours", "best": "best"}
_DIGITS = {"length": 3}  # decimals of metrics that are not shares


def scale(metric: str) -> float:
    """Return the factor that converts a metric to the paper's unit: 100 for shares, else 1."""
    return 1.0 if metric in _DIGITS else 100.0


_INTRODUCTION = """\
`ptrnet reproduce {name}` writes this page; `{document}` has the command, seed and interval
of each number. Shares are in percent, and lengths are in the unit square. The 95% intervals are
over the test instances, which no training saw. Each model was trained once. Line *ours* is the
paper's network with the training that we recommend. Line *best* is the best network that ships for
the task.
"""
_TITLES = {"full": "Results", "quick": "Quick runs, which only show that it works"}  # by budget


def write(name: str, results: Path, recorded: Sequence[Record]) -> None:
    """Write the page of a table's records."""
    with atomic_path(records.path_of(name, results, ".md")) as path:
        path.write_text("\n".join(page(tables.read(name), recorded)) + "\n", encoding="utf-8")


def page(table: Table, recorded: Sequence[Record]) -> Iterator[str]:
    """Yield the page, line by line."""
    yield f"# {table.title}\n"
    document = records.path_of(table.name, Path(), ".json")
    yield _INTRODUCTION.format(name=table.name, document=document)
    yield table.notes
    for budget, title in _TITLES.items():
        of_budget = [record for record in recorded if record.budget == budget]
        if of_budget:
            yield f"\n## {title}\n"
            head, *rows = compare(table, of_budget)
            yield markdown_table(head, rows)
            yield "\nCommands, commits and machines of these numbers:\n"
            head, *rows = origins(of_budget)
            yield markdown_table(head, rows)


def compare(table: Table, recorded: Sequence[Record]) -> Iterator[list[str]]:
    """Yield the cells of the table's head, and of each row that has results."""
    by_place = {(record.row, record.line): record for record in recorded}
    lines = [name for name in LINES if any(record.line == name for record in recorded)]
    algorithms = list(dict.fromkeys(a for row in table.rows for a in row.labellers))
    metrics = " / ".join(table.metrics).replace("_", " ")
    titles = [f"{name}: {metrics}" for name in ("paper", *(TITLES[line] for line in lines))]
    tests = [f"{a}: paper; here" for a in algorithms]
    yield ["method", "trained on", "n", "instances", *tests, *titles]
    for row in table.rows:
        there = [by_place.get((row.name, line)) for line in lines]
        known = [record for record in there if record]
        if known:
            baselines = [_algorithm(row, known[0], name) for name in algorithms]
            published = " / ".join(str(row.published.get(m, "-")) for m in table.metrics)
            ours = [_cell(record, table.metrics) if record else "" for record in there]
            count = f"{known[0].instances:,}"
            yield [row.method, row.trained_on, str(row.n), count, *baselines, published, *ours]


def _cell(record: Record, metrics: Sequence[str]) -> str:
    """Return the metrics of a record as text. Only the first metric has an interval."""
    texts = []
    for metric in metrics:
        measure = record.measure(metric)
        digits = _DIGITS.get(metric, 1)
        if measure is None:
            texts.append("-")
        elif texts:
            texts.append(measure.value_and_interval(digits, scale(metric))[0])
        else:
            texts.append(measure.text(digits, scale(metric)))
    return " / ".join(texts)


def _algorithm(row: Row, record: Record, name: str) -> str:
    """Return the mean cost of an algorithm's answers, in the paper and on our test, as text."""
    here = f"{record.algorithms[name]:.3f}" if name in record.algorithms else "-"
    return f"{row.published.get(name, 'N/A')}; {here}"


def origins(recorded: Sequence[Record]) -> Iterator[list[str]]:
    """Yield the cells of a table that says where each model came from."""
    yield ["model", "line", "decoder", "seed", "examples", "minutes", "machine", "commit"]
    seen = set()
    for r in recorded:
        if (r.model, r.line, r.decoder) not in seen:
            seen.add((r.model, r.line, r.decoder))
            examples = "" if r.examples is None else f"{r.examples:,}"
            minutes = "" if r.minutes is None else f"{r.minutes:.0f}"
            facts = [str(r.seed), examples, minutes, r.machine, r.commit]
            yield [f"`{r.model}`", TITLES[r.line], r.decoder, *facts]
