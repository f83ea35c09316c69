"""What came out: `results/PAPER-TABLE.json`, a record for each row, line and budget."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ptrnet.errors import InputError
from ptrnet.files import atomic_path, json_checksum, locked
from ptrnet.metrics.interval import Measure


@dataclass(frozen=True)
class Record:
    """One number, or several metrics of one test, with all that it takes to find it again."""

    row: str  # its name in the table
    line: str  # paper, ours or best
    budget: str
    digest: str  # of all that decides the result: line, test, budget
    model: str  # the run's folder, or the shipped model
    decoder: str
    instances: int
    metrics: Mapping[str, Mapping[str, Any]]  # a Measure's table, by metric
    published: Mapping[str, float | str]  # the paper's, by metric; shares in percent
    differences: Mapping[str, float]  # ours less the paper's, in the paper's units
    algorithms: Mapping[str, float]  # mean cost of the answers of algorithms to the same test
    command: str
    seed: int | None  # of the training; None of a shipped model
    commit: str
    machine: str
    minutes: float | None  # of the training
    examples: int | None  # that it saw

    def measure(self, metric: str) -> Measure | None:
        """A metric; None where the record has none of that name."""
        return Measure(**self.metrics[metric]) if metric in self.metrics else None


def path_of(table: str, results: Path, extension: str) -> Path:
    """The file of a table's results."""
    return results / f"{table.replace('/', '-')}{extension}"


def read(table: str, results: Path) -> list[Record]:
    """The records of a table; empty if there is no file.

    Raises:
        InputError: the file is not one of ours, or not as it was written.
    """
    path = path_of(table, results, ".json")
    if not path.exists():
        return []
    try:
        document = json.loads(path.read_text("utf-8"))
        records = [Record(**record) for record in document["records"]]
        written = document["sha256"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            f"{path}: expected results of ptrnet reproduce; move it away to begin anew"
        ) from None
    if written != json_checksum(document["records"]):
        raise InputError(f"{path}: damaged: it is not as it was written; move it away")
    return records


def write(table: str, results: Path, records: Iterable[Record]) -> None:
    """Writes a table's records in their order."""
    rows = [asdict(record) for record in records]
    document = {"table": table, "records": rows, "sha256": json_checksum(rows)}
    with atomic_path(path_of(table, results, ".json")) as path:
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def put(table: str, results: Path, record: Record) -> None:
    """Writes a record in the place of a former one of the same row, line and budget.

    Another process that has a record of the table meanwhile waits: both are kept.
    """
    key = (record.row, record.line, record.budget)
    results.mkdir(parents=True, exist_ok=True)
    with locked(results):
        others = [r for r in read(table, results) if (r.row, r.line, r.budget) != key]
        write(table, results, [*others, record])
