"""Files keep their kind when they are replaced: mode, link, FIFO, device."""

import os
import stat
import threading

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError, OutputError
from ptrnet.files import atomic_folder, atomic_path, check_writable
from ptrnet.labels import generate
from ptrnet.plots.figure import figure
from ptrnet.types import Example


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(path, text="new"):
    with atomic_path(path) as temporary:
        temporary.write_text(text)


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o755, 0o444])
def test_modes_are_kept(tmp_path, bits):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(bits)
    write(path)
    assert path.read_text() == "new" and mode(path) == bits


def test_a_new_file_has_the_usual_mode(tmp_path):
    write(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("")
    assert mode(tmp_path / "a.txt") == mode(tmp_path / "b.txt")


@pytest.mark.parametrize("is_there", [True, False])
def test_links_are_written_through(tmp_path, is_there):
    for folder in ("links", "files"):
        (tmp_path / folder).mkdir()
    target, link = tmp_path / "files" / "b.txt", tmp_path / "links" / "a.txt"
    link.symlink_to("../files/b.txt")
    if is_there:
        target.write_text("old")
        target.chmod(0o600)
    write(link)
    assert link.is_symlink() and target.read_text() == "new" and not target.is_symlink()
    assert not is_there or mode(target) == 0o600
    assert [len(list((tmp_path / f).iterdir())) for f in ("links", "files")] == [1, 1]


def test_links_that_lead_nowhere_are_refused_and_stay(tmp_path):
    loop, broken = tmp_path / "loop.txt", tmp_path / "broken.txt"
    loop.symlink_to(loop)
    broken.symlink_to(tmp_path / "none" / "a.txt")
    for path in (loop, broken):
        for writing in (check_writable, write):  # commands check before they compute
            with pytest.raises(InputError, match=rf"{path.name}: cannot be written: "):
                writing(path)
        assert path.is_symlink()


def read_in_thread(path):
    """Read a FIFO in a thread, because reading waits for a writer."""
    read = []
    thread = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    thread.start()
    return thread, read


@pytest.mark.parametrize("name", ["f.txt", "f.csv", "f.parquet", "f.png"])
def test_fifos_are_written_into(tmp_path, name):
    """Covers each way to write: a job's lines, other text, bytes, and pictures."""
    fifo, task = tmp_path / name, tasks.get("hull")
    os.mkfifo(fifo)
    thread, read = read_in_thread(fifo)
    if name == "f.png":
        pytest.importorskip("matplotlib")
        with figure(fifo, 1, 1):
            pass
    elif name == "f.csv":
        inputs = np.array([[0.0, 0.0], [0.0, 1.0], [0.5, 0.25], [1.0, 0.0]])
        formats.write(str(fifo), [Example(inputs, np.array([0, 3, 1]))], task)
    else:
        if name == "f.parquet":
            pytest.importorskip("pyarrow")
        generate("hull", 5, 3, output=fifo)
    thread.join(60)
    begin = {"f.png": b"\x89PNG", "f.parquet": b"PAR1"}.get(name, b"")
    assert len(read) == 1 and len(read[0]) > 20 and read[0].startswith(begin)
    assert stat.S_ISFIFO(fifo.stat().st_mode) and list(tmp_path.iterdir()) == [fifo]


def test_the_file_of_a_job_keeps_mode_and_link(tmp_path):
    (tmp_path / "files").mkdir()
    target, link = tmp_path / "files" / "a.txt", tmp_path / "b.txt"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    generate("hull", 5, 3, output=link)
    assert link.is_symlink() and mode(target) == 0o600
    assert target.read_text().count("output") == 3
    generate("hull", 5, 4, output=target)
    assert mode(target) == 0o600 and target.read_text().count("output") == 4
    assert len(list(tmp_path.rglob("*"))) == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")  # noqa: PTH110
def test_a_full_device_is_reported_in_one_line(tmp_path):
    link = tmp_path / "full.txt"
    link.symlink_to("/dev/full")
    with pytest.raises(OutputError, match=r"full\.txt: cannot be written: No space left"):
        write(link)
    assert stat.S_ISCHR(link.stat().st_mode)


def test_the_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    """Otherwise a power failure may undo the rename."""
    events, fsync = [], os.fsync

    def synced(handle):
        events.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    write(tmp_path / "a.txt")
    assert events == ["file", "folder"]
    with atomic_folder(tmp_path / "f") as folder:
        (folder / "b.txt").write_text("")
    assert events[2:] == ["file", "folder", "folder"]


def test_new_files_follow_the_umask_without_setting_it(tmp_path, monkeypatch):
    """Two threads that set and restore the umask could leave it at 0 for the whole process."""
    former = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", None)
            with atomic_path(tmp_path / "a") as temporary:
                temporary.write_text("a")
    finally:
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
