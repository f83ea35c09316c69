"""Read files by other code than ptrnet's, without any checks.

If a format has no checksum, a flipped bit can turn one number into another. In Parquet this holds
for the names and types of columns. A reader can
do no better than to say what the file says; these say it, too. They check nothing.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyarrow import parquet

FLOATS, INDICES = "float64", "int64"


def _txt(folder: Path) -> Any:
    rows = []
    for line in (folder / "a.txt").read_text(encoding="utf-8-sig").split("\n"):
        if not line.strip():
            continue
        before, word, behind = f" {' '.join(line.split())} ".partition(" output ")
        numbers = [float(field) for field in before.split()]
        points = [numbers[k : k + 2] for k in range(0, len(numbers), 2)]
        answer = [int(field) - 1 for field in behind.split()]
        if len(answer) > 1 and answer[0] == answer[-1]:
            answer.pop()
        rows.append([(FLOATS, points), (INDICES, answer) if word else None, {}, "euclidean"])
    return rows


def _jsonl(folder: Path) -> Any:
    rows = []
    for line in (folder / "a.jsonl").read_text(encoding="utf-8-sig").split("\n"):
        if not line.strip():
            continue
        row = json.loads(line)
        points = [[float(x) for x in point] for point in row.pop("inputs")]
        answer = row.pop("outputs", None)
        outputs = None if answer is None else (INDICES, answer)
        rows.append([(FLOATS, points), outputs, row, "euclidean"])
    return rows


def _csv(folder: Path) -> Any:
    text = (folder / "a.csv").read_text(encoding="utf-8-sig")
    rows = [row for row in csv.reader(text.split("\n")) if row]
    numeric = [k for k in range(len(rows[0])) if all(_is_number(row[k]) for row in rows[1:])]
    has_header = not all(_is_number(rows[0][k]) for k in numeric)
    points = [[float(row[k]) for k in numeric] for row in rows[has_header:]]
    return [[(FLOATS, points), None, {}, "euclidean"]]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _tsp(folder: Path) -> Any:
    keywords, points, inside = {}, [], False
    for line in (folder / "a.tsp").read_text(encoding="utf-8-sig").split("\n"):
        keyword, colon, value = (part.strip() for part in line.partition(":"))
        if keyword == "EOF":
            break
        if keyword == "NODE_COORD_SECTION":
            inside = True
        elif inside and line[:1].isdigit():
            points.append([float(field) for field in line.split()[1:]])
        elif colon:
            keywords[keyword] = value
    return [[(FLOATS, points), None, {}, keywords["EDGE_WEIGHT_TYPE"].split()[0]]]


def _parquet(folder: Path) -> Any:
    rows = []
    for row in parquet.read_table(folder / "a.parquet").to_pylist():
        points, answer = row.pop("inputs"), row.pop("outputs", None)
        outputs = None if answer is None else (INDICES, answer)
        others = {key: value for key, value in row.items() if value is not None}
        rows.append([(FLOATS, points), outputs, others, "euclidean"])
    return rows


# Readers by extension. Each takes the folder of the file `a.EXTENSION`.
READERS: dict[str, Callable[[Path], Any]] = {
    "txt": _txt,
    "jsonl": _jsonl,
    "csv": _csv,
    "tsp": _tsp,
    "parquet": _parquet,
}
