"""Lines of text with their numbers, however large or broken the file."""

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ptrnet.data.sizes import LARGEST
from ptrnet.errors import InputError

# Room for LARGEST points of two 25-character numbers, an answer, and as much again.
LONGEST_LINE = 128 * LARGEST
BLOCK = 2**22  # bytes, about: some thousand lines, a second's work at most


class Block(NamedTuple):
    """Some lines of a file that stand together."""

    start: int  # bytes before them
    end: int  # bytes before the line that follows
    first: int  # the number of the first line


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
    with _opened(name) as stream:
        yield from _decoded(stream, name)


def blocks(name: str) -> Iterator[Block]:
    """All lines of a file in blocks of about BLOCK bytes, which can be read apart.

    A line longer than LONGEST_LINE is cut, but never below that length: whoever reads the block
    refuses it.

    Raises:
        InputError: no such file.
    """
    with _opened(name) as stream:
        start, first = 0, 1
        while lines := stream.read(BLOCK):
            lines += stream.readline(LONGEST_LINE + 1)
            block = Block(start, start + len(lines), first)
            yield block
            start, first = block.end, first + lines.count(b"\n")


def count(name: str) -> int:
    """How many lines a file has, blank ones and an unfinished last one included."""
    found, last = 0, b"\n"
    with _opened(name) as stream:
        while read := stream.read(BLOCK):
            found, last = found + read.count(b"\n"), read[-1:]
    return found + (last != b"\n")


def numbered_in(block: Block, name: str) -> Iterator[tuple[int, str]]:
    """The lines of one block of a file, as `numbered` gives them."""
    with _opened(name) as stream:
        stream.seek(block.start)
        lines = stream.read(block.end - block.start)
    yield from _decoded(io.BytesIO(lines), name, block.first)


@contextlib.contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    try:
        with Path(name).open("rb") as stream:
            yield stream
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None


def _decoded(stream: BinaryIO, name: str, first: int = 1) -> Iterator[tuple[int, str]]:
    number = first - 1
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
