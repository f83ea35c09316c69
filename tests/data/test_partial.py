"""A file that grows: what a kill leaves, and who may go on with it."""

import json

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.partial import Partial, has_lines
from ptrnet.errors import InputError

TASK = tasks.get("sort")
FACTS = {"seed": 1}
LINES = [f"0.{k} 0.5 output 1 2\n".encode() for k in range(1, 5)]


def begun(path, *chunks, facts=FACTS):
    partial = Partial(path, facts, 2)
    list(partial.append(chunks))
    return partial


def test_whole_chunks_are_kept_and_the_rest_is_cut_off(tmp_path):
    path = tmp_path / "a.txt"
    partial = begun(path, LINES[0] + LINES[1], LINES[2] + b"0.4 0")
    assert Partial(path, FACTS, 2).kept() == 2
    assert partial.lines.read_bytes() == LINES[0] + LINES[1]
    assert not path.exists()


def test_a_smaller_count_cuts_and_a_full_one_keeps_the_last_short_chunk(tmp_path):
    path = tmp_path / "a.txt"
    partial = begun(path, b"".join(LINES[:2]), LINES[2])
    assert Partial(path, FACTS, 2).kept(3) == 3
    assert Partial(path, FACTS, 2).kept(4) == 2
    begun(path, b"".join(LINES[2:]))
    assert Partial(path, FACTS, 2).kept(1) == 1
    assert partial.lines.read_bytes() == LINES[0]


def test_finished_it_is_the_file_and_nothing_else_is_left(tmp_path):
    begun(tmp_path / "a.txt", *LINES).finish(TASK)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_bytes() == b"".join(LINES)


def test_a_chunk_counts_when_it_is_written(tmp_path):
    partial = Partial(tmp_path / "a.txt", FACTS, 2)
    for count in partial.append([LINES[0] + LINES[1]]):
        assert count == 2 and partial.lines.read_bytes() == LINES[0] + LINES[1]


def test_other_work_is_refused_and_left_alone(tmp_path):
    partial = begun(tmp_path / "a.txt", LINES[0] + LINES[1])
    with pytest.raises(InputError, match=r"beginning of other work \(seed 1, asked 2\)"):
        Partial(tmp_path / "a.txt", {"seed": 2}, 2)
    partial.facts.write_text("{")
    with pytest.raises(InputError, match="not readable"):
        Partial(tmp_path / "a.txt", FACTS, 2)
    assert partial.lines.read_bytes() == LINES[0] + LINES[1]


def test_facts_without_lines_begin_anew(tmp_path):
    partial = begun(tmp_path / "a.txt", LINES[0])
    partial.lines.unlink()
    assert Partial(tmp_path / "a.txt", {"seed": 2}, 2).kept() == 0
    assert json.loads(partial.facts.read_text()) == {"seed": 2}


def test_which_files_can_grow():
    assert has_lines("a.txt") and has_lines("b.JSONL")
    assert not has_lines("-") and not has_lines("c.csv")


def test_the_file_reads_back(tmp_path):
    begun(tmp_path / "a.txt", *LINES).finish(TASK)
    found = list(formats.read(str(tmp_path / "a.txt"), TASK))
    np.testing.assert_array_equal(found[3].inputs, [[0.4], [0.5]])
