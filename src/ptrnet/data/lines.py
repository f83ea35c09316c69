"""Lines of text with their numbers, however large or broken the file."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ptrnet.data.sizes import LARGEST
from ptrnet.errors import InputError

# Room for LARGEST points of two 25-character numbers, an answer, and as much again.
LONGEST_LINE = 128 * LARGEST


def numbered(name: str) -> Iterator[tuple[int, str]]:
    """The lines of a file, or of standard input for `-`, from 1 on; blank ones are left out.

    Raises:
        InputError: no such file, not UTF-8, or a line longer than LONGEST_LINE bytes.
    """
    if name == "-":
        if sys.stdin is None:  # closed by whoever started us
            raise InputError("standard input: cannot be read: it is closed")
        yield from _decoded(sys.stdin.buffer, "standard input")
        return
    try:
        with Path(name).open("rb") as stream:
            yield from _decoded(stream, name)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None


def _decoded(stream: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise InputError(
                f"{name}:{number}: longer than {LONGEST_LINE} bytes; an instance has at most "
                f"{LARGEST} elements"
            )
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}:{number}: not UTF-8 text (byte {error.start + 1} of the line)"
            ) from None
        if "\r" in text.rstrip("\r\n"):
            raise InputError(f"{name}:{number}: lines must end in \\n or \\r\\n, not in \\r alone")
        if text.strip():
            yield number, text
