"""Code that several formats share: lines of text, JSON values, files with a depot.

This file reads text files line by line, with the source of each line, `FILE:LINE`, for error
messages.
"""

import codecs
import contextlib
import functools
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ptrnet.errors import InputError
from ptrnet.files import named_failure
from ptrnet.types import LARGEST

# In bytes. An element takes up to about 60 bytes: two numbers of 25 characters, and an index. We
# allow 128 bytes for each element.
LONGEST_LINE = 128 * LARGEST
# In bytes, a few thousand lines. Parsing a block takes at most a second.
BLOCK = 2**22


class Block(NamedTuple):
    """Consecutive lines of a file."""

    start: int  # position of the first byte
    end: int  # position after the last byte
    first: int  # number of the first line, counted from 1


def display_name(path: str) -> str:
    """Return the name of a file in error messages: its path, or "standard input" for `-`."""
    return "standard input" if path == "-" else path


def filled_lines(path: str) -> Iterator[tuple[str, str]]:
    """Yield the source and the text of each line of a file, or of standard input for `-`.

    Blank lines are counted, but not yielded.

    Raises:
        InputError: the file cannot be read or is not UTF-8, lines end in `\\r` alone, or a line is
            longer than LONGEST_LINE bytes.
    """
    return ((source, text) for source, text in all_lines(path) if text.strip())


def all_lines(path: str) -> Iterator[tuple[str, str]]:
    """As `filled_lines`, but also yield blank lines."""
    with _opened(path) as stream:
        yield from _decoded(stream, display_name(path))


def standard_input_is_json() -> bool:
    """Whether standard input begins with `{`. Wait for the first bytes, but do not consume them."""
    return _is_json(_standard_input())


@functools.cache  # peek only once: later, the first bytes may have been read already
def _is_json(stream: BinaryIO) -> bool:
    assert isinstance(stream, io.BufferedReader)
    return stream.peek().removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")


def _standard_input() -> BinaryIO:
    if sys.stdin is None:  # the parent process has closed it
        raise InputError("standard input: cannot be read: it is closed")
    return sys.stdin.buffer


def blocks(path: str) -> Iterator[Block]:
    """Split a file into blocks of about BLOCK bytes, which processes can read independently.

    A block ends with a whole line. If the line is longer than LONGEST_LINE, the block may end
    within the line, and the reader of the block refuses the line.
    """
    with _opened(path) as stream:
        start, first = 0, 1
        while content := stream.read(BLOCK):
            content += stream.readline(LONGEST_LINE + 1)
            block = Block(start, start + len(content), first)
            yield block
            start, first = block.end, first + content.count(b"\n")


def count_lines(path: str) -> int:
    """Count the lines of a file, including blank lines and a last line without a line break."""
    count, last = 0, b"\n"
    with _opened(path) as stream:
        while content := stream.read(BLOCK):
            count, last = count + content.count(b"\n"), content[-1:]
    return count + (last != b"\n")


def lines_of_block(block: Block, path: str) -> Iterator[tuple[str, str]]:
    """As `filled_lines`, but only the lines of a block."""
    with _opened(path) as stream:
        stream.seek(block.start)
        content = stream.read(block.end - block.start)
    lines = _decoded(io.BytesIO(content), path, block.first)
    yield from ((source, text) for source, text in lines if text.strip())


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Open a file, or standard input for `-`. Raises InputError if it cannot be read."""
    if path == "-":
        yield _standard_input()
        return
    with named_failure(f"{path}: cannot be read"), Path(path).open("rb") as stream:
        yield stream


def _decoded(stream: BinaryIO, file: str, first: int = 1) -> Iterator[tuple[str, str]]:
    """Yield the lines of a stream as text, numbered from `first` on."""
    number = first - 1
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        source = f"{file}:{number}"
        if len(line) > LONGEST_LINE:
            raise InputError(
                f"{source}: the line is longer than {LONGEST_LINE} bytes; an instance has at most "
                f"{LARGEST} elements"
            )
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            where = f"byte {error.start + 1} of the line"
            raise InputError(f"{source}: not UTF-8 text ({where})") from None
        if "\r" in text.rstrip("\r\n"):
            raise InputError(f"{source}: lines must end in \\n or \\r\\n, not in \\r alone")
        yield source, text
