"""The rows of a CSV file, each with its line."""

import csv
from collections.abc import Iterator

from ptrnet.data.formats.parts.lines import numbered_lines
from ptrnet.errors import InputError


def csv_rows(path: str, source: str) -> Iterator[tuple[list[str], int]]:
    """The cells of each row, stripped, and the line on which the row ends.

    Raises:
        InputError: a file that cannot be read or is no CSV, or a row of another width.
    """
    line_number = 1

    def lines() -> Iterator[str]:
        nonlocal line_number
        for line_number, text in numbered_lines(path):  # noqa: B007  read outside
            yield text

    width = None
    try:
        for row in csv.reader(lines(), strict=True):
            width = len(row) if width is None else width
            if len(row) != width:
                raise InputError(
                    f"{source}:{line_number}: expected {width} columns, got {len(row)}"
                )
            yield [cell.strip() for cell in row], line_number
    except csv.Error as error:
        raise InputError(f"{source}:{line_number}: not CSV: {error}") from None


def is_number(cell: str) -> bool:
    """Whether a cell was meant as a number; `nan` and `1e400` were, and are refused later."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
