"""Results in `results/PAPER-TABLE.json`: a record for each row, line and budget."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ptrnet.errors import InputError
from ptrnet.files import atomic_path, checksum, locked
from ptrnet.metrics import Measure


@dataclass(frozen=True)
class Record:
    """The metrics of one test, with everything that is needed to reproduce them."""

    row: str  # the row's name in the table
    line: str  # paper, ours or best
    budget: str
    digest: str  # checksum of what decides the result: version, model, decoder, test
    model: str  # the run's folder, or the shipped model
    decoder: str
    instances: int
    metrics: Mapping[str, Mapping[str, Any]]  # by metric, a `Measure` as a dictionary
    published: Mapping[str, float | str]  # the paper's numbers, as in `Row`
    differences: Mapping[str, float]  # ours minus the paper's, in the paper's units
    algorithms: Mapping[str, float]  # by algorithm, the mean cost of its answers to the test
    command: str
    seed: int | None  # the training's seed; None if the model does not name a seed
    commit: str
    machine: str
    minutes: float | None  # duration of the training
    examples: int | None  # examples that the training saw

    def measure(self, metric: str) -> Measure | None:
        """Return a metric, or None if the record does not have it."""
        return Measure(**self.metrics[metric]) if metric in self.metrics else None


def path_of(table: str, results: Path, extension: str) -> Path:
    """Return the path of a table's results."""
    return results / f"{table.replace('/', '-')}{extension}"


def read(table: str, results: Path) -> list[Record]:
    """Return the records of a table, or an empty list if there is no file.

    Raises:
        InputError: `write` did not write the file, or the file was changed afterwards.
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
            f"{path}: expected results of ptrnet reproduce; move it away to start again"
        ) from None
    if written != _checksum(document["records"]):
        raise InputError(f"{path}: damaged: its checksum does not match; move it away")
    return records


def write(table: str, results: Path, records: Iterable[Record]) -> None:
    """Write a table's records in their order."""
    rows = [asdict(record) for record in records]
    document = {"table": table, "records": rows, "sha256": _checksum(rows)}
    with atomic_path(path_of(table, results, ".json")) as path:
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _checksum(records: Any) -> str:
    return checksum(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())


def put(table: str, results: Path, record: Record) -> None:
    """Add a record to a table's file. Replace an old record of the same row, line and budget.

    If another process is writing a record, wait for that process, so that both records are kept.
    """
    key = (record.row, record.line, record.budget)
    results.mkdir(parents=True, exist_ok=True)
    with locked(results):
        others = [r for r in read(table, results) if (r.row, r.line, r.budget) != key]
        write(table, results, [*others, record])
