"""What a Parquet file's footer says of its columns, read without Arrow.

Arrow ends the process where it is asked for a column's metadata and they contradict the schema, as
in a damaged file (seen with 25.0: "Definition level histogram size mismatch").
"""

from typing import Any, BinaryIO, NamedTuple

from ptrnet.data.formats.parts.thrift import Reader, Struct

_TAIL = 8  # bytes behind the footer: its length, and PAR1
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")


class DamagedFooterError(Exception):
    """A footer that is none."""


class Chunk(NamedTuple):
    """The part of a column that a row group has."""

    path: str  # in the schema, such as inputs.list.element
    codec: str  # the compression, as Arrow names it
    num_values: int
    unpacked_size: int  # bytes, as is the next
    packed_size: int
    start: int  # where its first page stands in the file


class RowGroup(NamedTuple):
    """Consecutive rows."""

    num_rows: int
    chunks: list[Chunk]  # one for each column


def row_groups(stream: BinaryIO) -> list[RowGroup]:
    """The row groups of a file.

    Raises:
        DamagedFooterError: what stands there cannot be read, or contradicts itself.
    """
    size = stream.seek(0, 2)
    stream.seek(max(0, size - _TAIL))
    length = int.from_bytes(stream.read(_TAIL)[:4], "little")
    stream.seek(max(0, size - _TAIL - length))
    try:
        footer = Reader(stream.read(length)).struct()
        groups = [_row_group(group) for group in footer.get(4, [])]
        if sum(group.num_rows for group in groups) != footer[3]:
            raise ValueError(footer[3])
        return groups
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, RecursionError):
        raise DamagedFooterError from None


def _row_group(group: Struct) -> RowGroup:
    return RowGroup(_number(group[3]), [_chunk(chunk[3]) for chunk in group[1]])


def _chunk(column: Struct) -> Chunk:
    path, codec = column[3], _number(column[4])
    unpacked, packed = column[6], column[7]
    start = column.get(11) or column[9]  # the dictionary stands before the data
    return Chunk(
        ".".join(name.decode() for name in path),
        _CODECS[codec] if codec < len(_CODECS) else str(codec),
        *map(_number, (column[5], unpacked, packed, start)),
    )


def _number(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value
