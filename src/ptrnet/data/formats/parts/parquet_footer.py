"""The row groups and columns that a Parquet file's footer lists, read without Arrow.

Arrow ends the process where it is asked for a column's metadata and they contradict the schema, as
in a damaged file (seen with 25.0: "Definition level histogram size mismatch").
"""

from typing import Any, BinaryIO, NamedTuple

from ptrnet.data.formats.parts.thrift import Reader, Struct

_TAIL = 8  # bytes after the footer: its length, and PAR1
# Fields by their numbers in parquet.thrift: of the footer, of a row group, of a column in it, and
# of the column's metadata.
_NUM_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _GROUP_NUM_ROWS = 1, 3
_METADATA = 3
_PATH, _CODEC, _NUM_VALUES, _UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 3, 4, 5, 6, 7
_DATA_OFFSET, _DICTIONARY_OFFSET = 9, 11
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")


class DamagedFooterError(Exception):
    """A footer that cannot be read, or that contradicts itself."""


class Chunk(NamedTuple):
    """The part of a column that a row group has."""

    path: str  # in the schema, such as inputs.list.element
    codec: str  # the compression, as Arrow names it
    num_values: int
    uncompressed_size: int  # bytes, as is the next
    compressed_size: int
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
        groups = [_row_group(group) for group in footer.get(_ROW_GROUPS, [])]
        if sum(group.num_rows for group in groups) != footer[_NUM_ROWS]:
            raise ValueError(footer[_NUM_ROWS])
        return groups
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, RecursionError):
        raise DamagedFooterError from None


def _row_group(group: Struct) -> RowGroup:
    chunks = [_chunk(column[_METADATA]) for column in group[_COLUMNS]]
    return RowGroup(_number(group[_GROUP_NUM_ROWS]), chunks)


def _chunk(metadata: Struct) -> Chunk:
    codec = _number(metadata[_CODEC])
    start = metadata.get(_DICTIONARY_OFFSET) or metadata[_DATA_OFFSET]  # the first of the two
    sizes = (metadata[field] for field in (_NUM_VALUES, _UNCOMPRESSED_SIZE, _COMPRESSED_SIZE))
    return Chunk(
        ".".join(name.decode() for name in metadata[_PATH]),
        _CODECS[codec] if codec < len(_CODECS) else str(codec),
        *map(_number, (*sizes, start)),
    )


def _number(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value
