"""The rows of a CSV file, each with its line."""

import csv
from collections.abc import Iterator, Sequence

from ptrnet.data.formats.parts.lines import all_lines
from ptrnet.errors import InputError, short


def csv_rows(path: str, source: str) -> Iterator[tuple[list[str], int]]:
    """The cells of each row, stripped, and the line on which the row ends.

    Raises:
        InputError: a file that cannot be read or is no CSV, or a row of another width.
    """
    line_number = 1

    def lines() -> Iterator[str]:
        nonlocal line_number
        for line_number, text in all_lines(path):  # noqa: B007  read outside
            yield text

    width = None
    try:
        for row in csv.reader(lines(), strict=True):
            if not any(cell.strip() for cell in row) and len(row) < 2:
                continue  # a blank line; one within a text in quotes is a part of it
            width = len(row) if width is None else width
            if len(row) != width:
                if ";" in row[0] or "\t" in row[0]:
                    raise InputError(
                        f"{source}:{line_number}: columns must be separated by commas, and numbers "
                        f"have points, got {short(','.join(row))}"
                    )
                raise InputError(
                    f"{source}:{line_number}: expected {width} columns, got {len(row)}"
                )
            yield [cell.strip() for cell in row], line_number
    except csv.Error as error:
        raise InputError(f"{source}:{line_number}: not CSV: {error}") from None


def check_header(header: Sequence[str], source: str) -> None:
    """Refuses a header that has a name twice: one of the two columns would be lost."""
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{source}: expected a name of its own for each column, got {twice} twice")
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise InputError(f"{source}: columns must be separated by commas, got one column")


def is_number(cell: str) -> bool:
    """Whether a cell was meant as a number; `nan` and `1e400` were, and are refused later."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
