"""TSPLIB files (Reinelt, report of 1995): lines `KEYWORD : value`, and a section of data.

Keywords come in any order, with or without space around the colon; EOF may be missing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ptrnet.data.formats.parts.lines import numbered
from ptrnet.data.sizes import LARGEST
from ptrnet.errors import InputError, short


class Keyword(NamedTuple):
    """What stands behind a keyword."""

    value: str
    line: int


class Sheet(NamedTuple):
    """A TSPLIB file, taken apart."""

    keywords: dict[str, Keyword]
    rows: list[tuple[int, list[str]]]  # the section: line number and fields


def parse(name: str, section: str, allowed: Mapping[str, Sequence[str]]) -> Sheet:
    """The keywords of a file, and the lines of its one section.

    Args:
        name: the file.
        section: the keyword that opens the section.
        allowed: the values that a keyword may have, where only some are of use.

    Raises:
        InputError: another section, a value that is not allowed, or no section.
    """
    keywords: dict[str, Keyword] = {}
    rows: list[tuple[int, list[str]]] = []
    opened = inside = False
    for line, text in numbered(name):
        where = f"{name}:{line}"
        word, colon, value = (part.strip() for part in text.partition(":"))
        if word == "EOF":
            break
        if word == section and not value:
            if opened:
                raise InputError(f"{where}: {section} stands twice")
            opened = inside = True
        elif inside and not word[:1].isalpha():
            rows.append((line, text.split()))
            if len(rows) > LARGEST + 1:  # a tour has a line more than cities
                raise InputError(f"{where}: expected at most {LARGEST} elements")
        elif word.endswith("_SECTION"):
            raise InputError(f"{where}: expected no section but {section}, got {short(word)}")
        elif not colon:
            raise InputError(
                f"{where}: expected KEYWORD : value or {section}, got {short(text.strip())}"
            )
        else:
            inside = False
            _keep(keywords, word, Keyword(value, line), allowed, where)
    if not opened:
        raise InputError(f"{name}: expected a {section}, got none")
    return Sheet(keywords, rows)


def _keep(
    keywords: dict[str, Keyword],
    word: str,
    given: Keyword,
    allowed: Mapping[str, Sequence[str]],
    where: str,
) -> None:
    if word == "COMMENT":
        return
    if word in keywords:
        raise InputError(f"{where}: {word} stands twice, first on line {keywords[word].line}")
    values = allowed.get(word)
    # A remark may stand behind the value, as in TYPE : TSP (its author).
    if values is not None and (given.value.split() or [""])[0] not in values:
        raise InputError(
            f"{where}: {word}: expected {' or '.join(values)}, got {short(given.value)}"
        )
    keywords[word] = given


def check_dimension(keywords: Mapping[str, Keyword], n: int, name: str) -> None:
    """Refuses a DIMENSION that is given and is not n."""
    if "DIMENSION" in keywords and keywords["DIMENSION"].value != str(n):
        value, line = keywords["DIMENSION"]
        raise InputError(f"{name}:{line}: DIMENSION: expected the {n} nodes, got {short(value)}")


def wanted(keywords: Mapping[str, Keyword], word: str, name: str) -> str:
    """The value of a keyword that has to be there, without a remark behind it."""
    if word not in keywords:
        raise InputError(f"{name}: expected the keyword {word}, got none")
    return (keywords[word].value.split() or [""])[0]
