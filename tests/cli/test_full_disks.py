"""Disks that are full, or fail: one line, and what is done is kept."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_bulk import GENERATE


def test_a_full_disk_loses_nothing(ptrnet, tmp_path, monkeypatch):
    output, write = tmp_path / "a.txt", Path.write_bytes

    def full(path, content):
        if path.name.startswith("000002"):
            raise OSError(28, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    code, _, errors = ptrnet(*GENERATE, "--count", 1000, "--output", output)
    assert code == 2 and "No space left" in errors and "kept in" in errors
    monkeypatch.undo()
    code, _, errors = ptrnet(*GENERATE, "--count", 1000, "--output", output)
    assert code == 0 and "resuming after 500 examples" in errors
    assert len(output.read_text().splitlines()) == 1000


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_fails_anywhere_is_one_line(ptrnet, tmp_path, monkeypatch, number):
    """As where a training's logs are written, by other packages."""

    def failing(*_, **__):
        raise OSError(number, os.strerror(number), "a/hparams.yaml")

    monkeypatch.setattr("ptrnet.jobs.job", failing)
    code, _, errors = ptrnet(*GENERATE, "--count", 10, "--output", tmp_path / "a.txt")
    assert (code, errors) == (2, f"ptrnet: a/hparams.yaml: {os.strerror(number)}\n")


def test_a_disk_that_is_full_at_the_end_loses_nothing(ptrnet, tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    output = tmp_path / "a.parquet"

    def full(stream, examples, task):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ptrnet.data.formats.parquet.write", full)
    code, _, errors = ptrnet(*GENERATE, "--count", 600, "--output", output)
    assert code == 2 and "No space left" in errors and "kept in" in errors
    assert not output.exists()
    monkeypatch.undo()
    code, _, errors = ptrnet(*GENERATE, "--count", 600, "--output", output)
    assert code == 0 and "resuming after 600 examples" in errors
    assert parquet.read_metadata(output).num_rows == 600


def test_where_standard_error_is_closed_nothing_of_it_is_among_the_answers():
    command = [sys.executable, "-m", "ptrnet", "solve", "sort", "nothing.txt"]
    with_closed = ["bash", "-c", '"$@" 2>&-', "bash", *command]
    done = subprocess.run(with_closed, capture_output=True, timeout=240)
    assert (done.returncode, done.stdout) == (2, b"")
