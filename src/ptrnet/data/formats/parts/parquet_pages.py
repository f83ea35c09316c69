"""How many numbers the longest row of a Parquet column has, known before any is decoded.

A row group says how many numbers all its rows have together, but not whether one row has them all.
The repetition levels say so: two bits a number, 0 where a row begins. They stand at the beginning
of each page, before its numbers (Apache Parquet, "Nested Encoding" and "Data Pages"). Only one page
is in memory at a time.
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptrnet.data.formats.parts.lines import LONGEST_LINE
from ptrnet.data.formats.parts.parquet_footer import Chunk
from ptrnet.data.formats.parts.thrift import Reader

_LARGEST_PAGE = 4 * LONGEST_LINE  # bytes: writers make pages of one megabyte
_DATA, _DATA_V2 = 0, 3  # kinds of pages that have levels
# Fields of a page's header, and of the header of its kind in it, by their numbers in
# parquet.thrift.
_KIND, _UNCOMPRESSED_SIZE, _COMPRESSED_SIZE, _DATA_HEADER, _DATA_V2_HEADER = 1, 2, 3, 5, 8
_NUM_VALUES, _LEVEL_ENCODING, _LEVEL_BYTES = 1, 4, 6
_RLE_HYBRID = 3  # how levels are encoded, but in files of before 2013: see `_decode`
_HEADER = 2**16  # bytes that a page's header has at most, its statistics included


class UnknownPagesError(Exception):
    """Pages that are not as they are expected here; Arrow may read them nevertheless."""


class TooLargeError(Exception):
    """A page of more bytes or values than writers put into one; it may stand for gigabytes."""


class Page(NamedTuple):
    """A page of numbers."""

    num_values: int
    levels: bytes  # the repetition levels, encoded


def longest_row(stream: BinaryIO, chunk: Chunk, max_level: int, stop: int) -> int:
    """The most values that a row has; no more are counted where one has over `stop`.

    Args:
        stream: of the file.
        chunk: of the column, a row group's.
        max_level: the highest repetition level of the column; 0 where a row has one value.
        stop: values of a row that are too many.

    Raises:
        UnknownPagesError: they cannot be read here.
        TooLargeError: a page has more bytes or values than writers put into one.
    """
    longest = current = 0
    for page in _pages(stream, chunk):
        if max_level == 0:  # a value a row: only the pages' sizes matter
            continue
        levels = _decode(page.levels, max_level.bit_length(), page.num_values)
        starts = np.flatnonzero(levels == 0)
        if len(starts):
            gaps = np.diff(starts, append=len(levels))
            longest = max(longest, current + int(starts[0]), int(gaps[:-1].max(initial=0)))
            current = int(gaps[-1])
        else:
            current += len(levels)
        longest = max(longest, current)
        if longest > stop:
            break
    return longest


def _pages(stream: BinaryIO, chunk: Chunk) -> Iterator[Page]:
    """The pages of numbers of a column, without the numbers."""
    position = chunk.start
    while position < chunk.start + chunk.compressed_size:
        stream.seek(position)
        reader = Reader(stream.read(_HEADER))
        try:
            header = reader.struct()
            fields = (_KIND, _UNCOMPRESSED_SIZE, _COMPRESSED_SIZE)
            kind, uncompressed, compressed = (header[field] for field in fields)
        except (IndexError, KeyError, RecursionError):
            raise UnknownPagesError from None
        if not isinstance(uncompressed, int) or not isinstance(compressed, int):
            raise UnknownPagesError
        if min(uncompressed, compressed) < 0:
            raise UnknownPagesError
        if max(uncompressed, compressed) > _LARGEST_PAGE:
            raise TooLargeError
        body = position + reader.position
        stream.seek(body)
        if kind == _DATA:
            content = stream.read(compressed)
            yield _first_version(header.get(_DATA_HEADER), content, uncompressed, chunk.codec)
        elif kind == _DATA_V2:
            yield _second_version(header.get(_DATA_V2_HEADER), stream.read(compressed))
        position = body + compressed


def _first_version(header: object, content: bytes, uncompressed: int, codec: str) -> Page:
    """A page whose levels are compressed with its numbers; their length stands before them."""
    import pyarrow as pa

    if not isinstance(header, dict) or header.get(_LEVEL_ENCODING) != _RLE_HYBRID:
        raise UnknownPagesError
    if codec != "UNCOMPRESSED":
        name = {"LZ4": "lz4_raw"}.get(codec, codec.lower())
        try:
            content = pa.decompress(content, uncompressed, name, asbytes=True)
        except (pa.ArrowException, OSError, ValueError):
            raise UnknownPagesError from None
    length = int.from_bytes(content[:4], "little")
    return Page(_count(header), content[4 : 4 + length])


def _second_version(header: object, content: bytes) -> Page:
    """A page whose levels stand before its compressed numbers; the header has their length."""
    length = header.get(_LEVEL_BYTES) if isinstance(header, dict) else None
    if not isinstance(length, int) or length < 0:
        raise UnknownPagesError
    return Page(_count(header), content[:length])


def _count(header: object) -> int:
    count = header.get(_NUM_VALUES) if isinstance(header, dict) else None
    if not isinstance(count, int) or count < 0:
        raise UnknownPagesError
    if count > _LARGEST_PAGE:
        raise TooLargeError
    return count


def _decode(content: bytes, bits: int, count: int) -> NDArray[np.uint8]:
    """`(count,)` levels of a few bits each, from the hybrid of run-length encoding and bit-packing.

    A header's last bit says which comes: a level and how often it stands (RLE), or groups of eight
    levels, each in `bits` bits.
    """
    reader, parts, total = Reader(content), [], 0
    while total < count:
        try:
            header = reader.varint()
        except IndexError:
            raise UnknownPagesError from None
        if header & 1:
            bit_packed = np.frombuffer(reader.read((header >> 1) * bits), np.uint8)
            flags = np.unpackbits(bit_packed, bitorder="little")
            digits = flags[: len(flags) // bits * bits].reshape(-1, bits)
            part = digits @ (1 << np.arange(bits, dtype=np.uint8))
        else:
            part = np.full(min(header >> 1, count - total), (reader.read(1) or b"\0")[0], np.uint8)
        if not len(part):
            raise UnknownPagesError
        parts.append(part)
        total += len(part)
    return np.concatenate([np.zeros(0, np.uint8), *parts])[:count]
