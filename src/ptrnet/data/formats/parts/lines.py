"""Numbered lines of text files, with errors for files that are not text."""

import codecs
import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO
from weakref import WeakKeyDictionary

from ptrnet.data.sizes import LARGEST
from ptrnet.errors import InputError

# Bytes: room for LARGEST points of two 25-character numbers, an answer, and as much again.
LONGEST_LINE = 128 * LARGEST
BLOCK = 2**22  # bytes of a block, about: some thousand lines, at most a second's work


class Block(NamedTuple):
    """Consecutive lines of a file."""

    start: int  # the byte at which they start
    end: int  # the byte after them
    first: int  # the number of the first line, counted from 1


def display_name(path: str) -> str:
    """Return the name of a file in error messages: its path, or "standard input" for `-`."""
    return "standard input" if path == "-" else path


def numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, or of standard input for `-`, with their numbers from 1 on.

    Blank lines are counted but left out.

    Raises:
        InputError: no such file, not UTF-8, lines that end in `\\r` alone, or a line longer than
            LONGEST_LINE bytes.
    """
    return ((number, text) for number, text in all_lines(path) if text.strip())


def all_lines(path: str) -> Iterator[tuple[int, str]]:
    """As `numbered_lines`, including blank lines."""
    if path != "-":
        with _opened(path) as stream:
            yield from _decoded(stream, path)
        return
    yield from _decoded(_standard_input().buffer, display_name(path))


def standard_input_is_json() -> bool:
    """Whether standard input begins with `{`. Waits for its first bytes without consuming them."""
    stream = _standard_input()
    if stream not in _first_bytes:
        if isinstance(stream.buffer, io.BufferedReader):
            beginning = stream.buffer.peek()
        else:  # in memory
            place = stream.buffer.tell()
            beginning = stream.buffer.read(8)
            stream.buffer.seek(place)
        _first_bytes[stream] = beginning.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    return _first_bytes[stream] == b"{"


# The first byte of each standard input. We keep it, because it can be peeked only before reading.
_first_bytes: "WeakKeyDictionary[TextIO, bytes]" = WeakKeyDictionary()


def _standard_input() -> TextIO:
    if sys.stdin is None:  # the parent process closed it
        raise InputError("standard input: cannot be read: it is closed")
    return sys.stdin


def blocks(path: str) -> Iterator[Block]:
    """Yield the lines of a file in blocks of about BLOCK bytes, which can be read independently.

    A line longer than LONGEST_LINE may be cut, but in its block it is still longer than that, so
    the reader of the block refuses it.

    Raises:
        InputError: no such file.
    """
    with _opened(path) as stream:
        start, first = 0, 1
        while content := stream.read(BLOCK):
            content += stream.readline(LONGEST_LINE + 1)
            block = Block(start, start + len(content), first)
            yield block
            start, first = block.end, first + content.count(b"\n")


def count_lines(path: str) -> int:
    """Count the lines of a file, including blank lines and an unfinished last line."""
    count, last = 0, b"\n"
    with _opened(path) as stream:
        while content := stream.read(BLOCK):
            count, last = count + content.count(b"\n"), content[-1:]
    return count + (last != b"\n")


def numbered_lines_of(block: Block, path: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of one block of a file as `numbered_lines` does."""
    with _opened(path) as stream:
        stream.seek(block.start)
        content = stream.read(block.end - block.start)
    lines = _decoded(io.BytesIO(content), path, block.first)
    yield from ((number, text) for number, text in lines if text.strip())


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Open a file for reading bytes. Raises InputError if it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            yield stream
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _decoded(stream: BinaryIO, source: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """Yield the lines of a stream as text, numbered from `first` on."""
    number = first - 1
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise InputError(
                f"{source}:{number}: longer than {LONGEST_LINE} bytes; an instance has at most "
                f"{LARGEST} elements"
            )
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source}:{number}: not UTF-8 text (byte {error.start + 1} of the line)"
            ) from None
        if "\r" in text.rstrip("\r\n"):
            raise InputError(
                f"{source}:{number}: lines must end in \\n or \\r\\n, not in \\r alone"
            )
        yield number, text
