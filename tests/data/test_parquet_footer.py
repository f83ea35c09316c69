"""What is known of a Parquet file before Arrow decodes any of it."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.formats.parts import parquet_footer, parquet_pages
from ptrnet.errors import InputError
from ptrnet.types import Example

HULL = tasks.get("hull")
LISTS = pa.list_(pa.list_(pa.float64()))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "lz4"])
def test_the_longest_row_is_known_before_it_is_decoded(tmp_path, version, compression):
    """Against the rows themselves, in pages of a few numbers each, and of many."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 40, 300).tolist()
    sizes[200] = 900
    rows = [rng.integers(0, 3, (n, 2)).astype(float).tolist() for n in sizes]
    rows[7] = None
    path = tmp_path / "a.parquet"
    for page in (64, 2**20):
        parquet.write_table(
            pa.table({"inputs": pa.array(rows, LISTS)}),
            path,
            compression=compression,
            data_page_version=version,
            data_page_size=page,
            write_batch_size=8,
        )
        file = parquet.ParquetFile(path)
        level = file.schema.column(0).max_repetition_level
        with path.open("rb") as stream:
            ((_, (chunk,)),) = parquet_footer.row_groups(stream)
            assert parquet_pages.longest_row(stream, chunk, level, 10**9) == 1800
            assert 100 < parquet_pages.longest_row(stream, chunk, level, 100) <= 1800


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "lz4", "brotli"])
def test_a_footer_is_read_as_arrow_reads_it(tmp_path, compression):
    path = tmp_path / "a.parquet"
    table = pa.table({"inputs": pa.array([[[0.5, 0.25]] * n for n in range(1, 90)], LISTS)})
    table = table.append_column("name", pa.array([f"row {k}" for k in range(89)]))
    parquet.write_table(table, path, compression=compression, row_group_size=20)
    metadata = parquet.ParquetFile(path).metadata
    with path.open("rb") as stream:
        groups = parquet_footer.row_groups(stream)
    assert len(groups) == metadata.num_row_groups == 5
    for g, (num_rows, chunks) in enumerate(groups):
        assert num_rows == metadata.row_group(g).num_rows
        for c, chunk in enumerate(chunks):
            column = metadata.row_group(g).column(c)
            assert chunk.path == column.path_in_schema
            assert chunk.codec.removesuffix("_RAW") == column.compression
            assert chunk[2:] == (
                column.num_values,
                column.total_uncompressed_size,
                column.total_compressed_size,
                column.dictionary_page_offset or column.data_page_offset,
            )


def test_a_damaged_footer_ends_no_process(tmp_path):
    """Each bit of it flipped: Arrow ends the process at some that contradict the schema."""
    path, whole = tmp_path / "a.parquet", tmp_path / "whole.parquet"
    examples = [
        Example(np.full((3, 2), k / 8), np.arange(3), extra={"name": "x"}) for k in range(4)
    ]
    task = HULL
    formats.write(str(whole), examples, task)
    content = whole.read_bytes()
    expected = list(map(str, formats.read(str(whole), task)))
    length = int.from_bytes(content[-8:-4], "little")
    outcomes = {"refused": 0, "the same": 0}
    for position in range(len(content) - 8 - length, len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            actual = [str(e).replace(str(path), str(whole)) for e in formats.read(str(path), task)]
        except InputError as error:
            assert "\n" not in str(error)
            outcomes["refused"] += 1
        else:
            assert actual == expected
            outcomes["the same"] += 1
    assert min(outcomes.values()) > 100


def test_a_dictionary_that_lacks_texts_is_damage(tmp_path):
    """The header of its page has no checksum, and Arrow reads such a column."""
    path = tmp_path / "a.parquet"
    names = [{"name": f"row {k}"} for k in range(30)]
    formats.write(str(path), [Example(np.zeros((3, 2)), extra=name) for name in names], HULL)
    content = path.read_bytes()
    with path.open("rb") as stream:
        ((_, chunks),) = parquet_footer.row_groups(stream)
    (start,) = [chunk.start for chunk in chunks if chunk.path == "name"]
    count = content.index(b"\x15\x3c", start)  # field 1 of the header, zigzag: 30 texts
    path.write_bytes(content[: count + 1] + b"\x34" + content[count + 2 :])
    with pytest.raises(InputError, match=r"a\.parquet: damaged|not a Parquet file"):
        list(formats.read(str(path), HULL))
