"""TSPLIB files (Reinelt, report of 1995): lines `KEYWORD : value`, and a section of data.

Keywords come in any order, with or without space around the colon; EOF may be missing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ptrnet.data.formats.parts.lines import numbered_lines
from ptrnet.data.sizes import LARGEST
from ptrnet.errors import InputError, short


class Entry(NamedTuple):
    """The value of a keyword, and the line that it stands on."""

    value: str
    line: int  # its number in the file


class TsplibFile(NamedTuple):
    """The content of a TSPLIB file."""

    keywords: dict[str, Entry]
    rows: list[tuple[int, list[str]]]  # of the section: line number and fields


def parse(path: str, section: str, allowed: Mapping[str, Sequence[str]]) -> TsplibFile:
    """The keywords of a file, and the lines of its one section.

    Args:
        path: the file.
        section: the keyword that opens the section.
        allowed: the values that are allowed for some keywords; others may have any.

    Raises:
        InputError: no such section or another one, a section or a keyword twice, a value that is
            not allowed, a line that is neither, or more elements than any instance may have.
    """
    keywords: dict[str, Entry] = {}
    rows: list[tuple[int, list[str]]] = []
    opened = inside = False  # whether the section has begun; whether this line is in it
    for line, text in numbered_lines(path):
        source = f"{path}:{line}"
        keyword, colon, value = (part.strip() for part in text.partition(":"))
        if keyword == "EOF":
            break
        if keyword == section and not value:
            if opened:
                raise InputError(f"{source}: {section} occurs twice")
            opened = inside = True
        elif inside and not keyword[:1].isalpha():
            rows.append((line, text.split()))
            if len(rows) > LARGEST + 1:  # a tour has one line more than cities, -1
                raise InputError(f"{source}: expected at most {LARGEST} elements")
        elif keyword.endswith("_SECTION"):
            raise InputError(f"{source}: expected no section but {section}, got {short(keyword)}")
        elif not colon:
            raise InputError(
                f"{source}: expected KEYWORD : value or {section}, got {short(text.strip())}"
            )
        else:
            inside = False
            _add_entry(keywords, keyword, Entry(value, line), allowed, source)
    if not opened:
        raise InputError(f"{path}: expected a {section}, got none")
    return TsplibFile(keywords, rows)


def _add_entry(
    keywords: dict[str, Entry],
    keyword: str,
    entry: Entry,
    allowed: Mapping[str, Sequence[str]],
    source: str,
) -> None:
    """Adds an entry to `keywords`; leaves out comments."""
    if keyword == "COMMENT":
        return
    if keyword in keywords:
        raise InputError(
            f"{source}: {keyword} occurs twice, first on line {keywords[keyword].line}"
        )
    values = allowed.get(keyword)
    # A remark may follow the value, as in TYPE : TSP (its author).
    if values is not None and (entry.value.split() or [""])[0] not in values:
        raise InputError(
            f"{source}: {keyword}: expected {' or '.join(values)}, got {short(entry.value)}"
        )
    keywords[keyword] = entry


def check_dimension(keywords: Mapping[str, Entry], n: int, path: str) -> None:
    """Refuses a DIMENSION that is present and not n."""
    if "DIMENSION" in keywords and keywords["DIMENSION"].value != str(n):
        value, line = keywords["DIMENSION"]
        raise InputError(f"{path}:{line}: DIMENSION: expected the {n} nodes, got {short(value)}")


def required_value(keywords: Mapping[str, Entry], keyword: str, path: str) -> str:
    """The value of a keyword that has to be there, without a remark after it."""
    if keyword not in keywords:
        raise InputError(f"{path}: expected the keyword {keyword}, got none")
    return (keywords[keyword].value.split() or [""])[0]
