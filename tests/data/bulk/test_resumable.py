"""A resumable file: what a kill leaves, and who may go on with it."""

import contextlib
import fcntl
import json
import os
import signal
import threading
import time

import numpy as np
import pytest

import ptrnet
from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.bulk import engine, resumable
from ptrnet.data.bulk.resumable import ResumableFile, can_resume
from ptrnet.errors import InputError, OutputError

TASK = tasks.get("sort")
KEY = {"seed": 1}
LINES = [f"0.{k} 0.5 output 1 2\n".encode() for k in range(1, 5)]


def begun(path, *chunks, resume_key=KEY):
    """What a killed run leaves: its lock is gone with it."""
    with ResumableFile(path, resume_key, 2) as file:
        list(file.append(chunks))
    return file


def trimmed(path, total=None):
    with ResumableFile(path, KEY, 2) as file:
        return file.trim(total)


def test_whole_chunks_stay_and_the_rest_is_cut_off(tmp_path):
    path = tmp_path / "a.txt"
    file = begun(path, LINES[0] + LINES[1], LINES[2] + b"0.4 0")
    assert trimmed(path) == 2
    assert file.lines_path.read_bytes() == LINES[0] + LINES[1]
    assert not path.exists()


def test_a_smaller_count_cuts_and_a_full_one_keeps_the_last_short_chunk(tmp_path):
    path = tmp_path / "a.txt"
    file = begun(path, b"".join(LINES[:2]), LINES[2])
    assert trimmed(path, 3) == 3
    assert trimmed(path, 4) == 2
    begun(path, b"".join(LINES[2:]))
    assert trimmed(path, 1) == 1
    assert file.lines_path.read_bytes() == LINES[0]


def test_finished_it_is_the_file_and_nothing_else_is_left(tmp_path):
    begun(tmp_path / "a.txt", *LINES).finish(TASK)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_bytes() == b"".join(LINES)


def test_a_chunk_counts_when_it_is_written(tmp_path):
    with ResumableFile(tmp_path / "a.txt", KEY, 2) as file:
        for count in file.append([LINES[0] + LINES[1]]):
            assert count == 2 and file.lines_path.read_bytes() == LINES[0] + LINES[1]


def test_other_work_is_refused_and_left_alone(tmp_path):
    file = begun(tmp_path / "a.txt", LINES[0] + LINES[1])
    with pytest.raises(InputError, match=r"beginning of other work \(seed 1, asked 2\)"):
        ResumableFile(tmp_path / "a.txt", {"seed": 2}, 2)
    file.key_path.write_text("{")
    with pytest.raises(InputError, match="not readable"):
        ResumableFile(tmp_path / "a.txt", KEY, 2)
    assert file.lines_path.read_bytes() == LINES[0] + LINES[1]


def test_two_runs_at_once_are_refused(tmp_path):
    with ResumableFile(tmp_path / "a.txt", KEY, 2) as first:
        with pytest.raises(InputError, match="another run is writing it"):
            ResumableFile(tmp_path / "a.txt", KEY, 2)
        first.discard()
    assert not list(tmp_path.iterdir())


def test_lines_without_a_key_are_refused(tmp_path):
    file = begun(tmp_path / "a.txt", LINES[0] + LINES[1])
    file.key_path.unlink()
    with pytest.raises(InputError, match="not readable"):
        ResumableFile(tmp_path / "a.txt", KEY, 2)
    assert file.lines_path.read_bytes() == LINES[0] + LINES[1]


def test_a_name_that_leaves_no_room_is_one_line(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        ResumableFile(tmp_path / ("a" * 245 + ".txt"), KEY, 2)


def test_a_key_without_lines_begin_anew(tmp_path):
    file = begun(tmp_path / "a.txt", LINES[0])
    file.lines_path.unlink()
    with ResumableFile(tmp_path / "a.txt", {"seed": 2}, 2) as anew:
        assert anew.trim() == 0
    assert json.loads(file.key_path.read_text()) == {"seed": 2}


MANY = [f"0.{k} 0.5 output 1 2\n".encode() for k in range(100, 112)]
CHUNKS = [b"".join(MANY[k : k + 2]) for k in range(0, 12, 2)]


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("line", range(12))
def test_a_damaged_line_is_computed_again(tmp_path, capsys, line):
    file = begun(tmp_path / "a.txt", *CHUNKS[:4])
    begun(tmp_path / "a.txt", *CHUNKS[4:])
    flip(file.lines_path, line * len(MANY[0]) + 3)
    kept = line // 2 * 2
    assert trimmed(tmp_path / "a.txt") == kept
    assert file.lines_path.read_bytes() == b"".join(MANY[:kept])
    said = f"{file.lines_path}: damaged after line {kept}; what follows is computed again\n"
    assert capsys.readouterr().err == said
    begun(tmp_path / "a.txt", *CHUNKS[kept // 2 :])
    assert trimmed(tmp_path / "a.txt") == 12 and capsys.readouterr().err == ""


def test_lost_lines_are_computed_again(tmp_path, capsys):
    file = begun(tmp_path / "a.txt", *CHUNKS)
    with file.lines_path.open("r+b") as stream:
        stream.truncate(5 * len(MANY[0]))
    assert trimmed(tmp_path / "a.txt") == 4
    assert "damaged after line 4" in capsys.readouterr().err


@pytest.mark.parametrize("position", [0, 1, 5, 100, 200, -80])
def test_a_damaged_checksum_costs_no_lines(tmp_path, capsys, position):
    file = begun(tmp_path / "a.txt", *CHUNKS)
    flip(file.sums_path, position)
    assert trimmed(tmp_path / "a.txt") == 12 and capsys.readouterr().err == ""


def test_checksums_that_hold_nothing_prove_nothing(tmp_path, capsys):
    file = begun(tmp_path / "a.txt", *CHUNKS)
    file.sums_path.write_bytes(b"\0" * 50)
    assert trimmed(tmp_path / "a.txt") == 0 and "damaged after line 0" in capsys.readouterr().err


def test_a_chunk_whose_checksum_was_not_written_yet_is_no_damage(tmp_path, capsys):
    file = begun(tmp_path / "a.txt", *CHUNKS[:2])
    with file.lines_path.open("ab") as stream:
        stream.write(CHUNKS[2])
    assert trimmed(tmp_path / "a.txt") == 4 and capsys.readouterr().err == ""


def test_lines_of_a_former_version_are_taken_as_they_are(tmp_path, capsys):
    file = begun(tmp_path / "a.txt", *CHUNKS[:2])
    file.sums_path.unlink()
    assert trimmed(tmp_path / "a.txt") == 4 and capsys.readouterr().err == ""
    begun(tmp_path / "a.txt", *CHUNKS[2:])
    flip(file.lines_path, 3)
    assert trimmed(tmp_path / "a.txt") == 0


def test_an_end_that_cannot_be_written_is_one_line_and_keeps_the_lines(tmp_path, monkeypatch):
    file = begun(tmp_path / "a.txt", *CHUNKS)

    def refused(path, target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.replace", refused)
    with pytest.raises(OutputError, match=r"a\.txt: cannot be written: Permission denied"):
        file.finish(TASK)
    assert file.lines_path.read_bytes() == b"".join(MANY) and file.key_path.exists()


def test_a_run_that_ends_while_another_opens_its_lines(tmp_path, monkeypatch):
    """The other one has opened a file that is no longer there, and must not go on with it."""
    first = ResumableFile(tmp_path / "a.txt", KEY, 2)
    list(first.append(CHUNKS))
    flock = fcntl.flock

    def ended(stream, flags):
        monkeypatch.setattr("fcntl.flock", flock)
        first.finish(TASK)
        first.__exit__()
        flock(stream, flags)

    monkeypatch.setattr("fcntl.flock", ended)
    with ResumableFile(tmp_path / "a.txt", {"seed": 2}, 2) as second:
        assert second.trim() == 0 and second.lines_path.exists()
        second.discard()
    assert (tmp_path / "a.txt").read_bytes() == b"".join(MANY)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_run_that_begins_while_another_ends_keeps_its_files(tmp_path, monkeypatch, is_stopped):
    """Its key and its checksums were taken away by their names, which both runs share."""
    first, second = begun(tmp_path / "a.txt", *CHUNKS), []

    def moved(source, path):
        source.replace(path)
        second.append(ResumableFile(tmp_path / "a.txt", {"seed": 2}, 2))
        list(second[0].append(CHUNKS[:1]))
        if is_stopped:
            second[0].__exit__()

    monkeypatch.setattr(resumable, "move", moved)
    first.finish(TASK)
    if not is_stopped:
        second[0].__exit__()
    with ResumableFile(tmp_path / "a.txt", {"seed": 2}, 2) as again:
        assert again.trim() == 2 and again.sums_path.exists()


def test_which_files_can_be_resumed():
    assert can_resume("a.txt") and can_resume("b.JSONL")
    assert not can_resume("-") and not can_resume("c.csv")


def test_the_file_reads_back(tmp_path):
    begun(tmp_path / "a.txt", *LINES).finish(TASK)
    examples = list(formats.read(str(tmp_path / "a.txt"), TASK))
    np.testing.assert_array_equal(examples[3].inputs, [[0.4], [0.5]])


def interrupted_at(place):
    """As `ptrnet.progress.track`, with an interrupt in the caller's hands at an item."""

    def track(items, *arguments):
        for k, item in enumerate(items):
            yield item
            if k == place:
                raise KeyboardInterrupt

    return track


def test_an_interrupt_waits_for_what_is_being_written(tmp_path, monkeypatch):
    """Files were removed while a thread wrote them, and one of them stayed in the way."""
    write = resumable.atomic_path

    @contextlib.contextmanager
    def slow(path):
        time.sleep(0.3 * path.name.endswith("sums"))
        with write(path) as temporary:
            yield temporary

    path, before = str(tmp_path / "p.txt"), {*threading.enumerate()}
    with monkeypatch.context() as patch:
        patch.setattr(engine, "track", interrupted_at(3))
        patch.setattr(resumable, "atomic_path", slow)
        with pytest.raises(KeyboardInterrupt) as interrupt:
            ptrnet.generate("sort", 5, 600, output=path, seed=1)
        assert interrupt.tb  # whose frames hold the generators: nothing is left to their end
        assert {*threading.enumerate()} <= before
    assert len(list(tmp_path.iterdir())) in (0, 3)
    ptrnet.generate("sort", 5, 600, output=path, seed=1)
    assert [p.name for p in tmp_path.iterdir()] == ["p.txt"]


def test_a_forked_process_keeps_no_file_locked(tmp_path):
    with ResumableFile(tmp_path / "a.txt", KEY, 2):
        child = os.fork()
        if not child:
            signal.pause()
    try:
        begun(tmp_path / "a.txt", *LINES)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
