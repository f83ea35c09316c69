"""Codes of groups: equal ids have equal codes, and all examples have a group, or none has."""

import json

import numpy as np
import pytest

import ptrnet
from ptrnet.cli import run
from ptrnet.data import formats, stored
from ptrnet.data.columns import Columns
from ptrnet.data.groups import code_of, grouped, with_groups
from ptrnet.data.infer_task import loosest_task
from ptrnet.data.tables import infer_sets
from ptrnet.errors import InputError
from ptrnet.types import Dataset, Example

TASK = loosest_task(1)


def examples(groups, key="group"):
    lines = ({} if group is None else {key: group} for group in groups)
    return [
        Example(np.array([[1.0], [2.0]]), np.array([0]), f"line {k}", line)
        for k, line in enumerate(lines, 1)
    ]


def test_codes_tell_groups_apart_and_do_not_depend_on_the_type_of_a_number():
    ids = [*range(10_000), *(f"user {k}" for k in range(10_000)), "007", "é", "\ud800"]
    codes = {code_of(value) for value in ids}
    assert len(codes) == len(ids) and all(-(2**63) <= code < 2**63 for code in codes)
    assert code_of(7) == code_of(7.0) == code_of("7") == code_of(np.int64(7)) != code_of("007")
    assert code_of(2**60 + 1) != code_of(2**60)


@pytest.mark.parametrize(
    ("groups", "complaint"),
    [
        ([7, None], "line 2: expected a group, as in earlier examples"),
        ([None, 7], "line 2: expected no group, as in earlier examples"),
        ([[1]], r'line 1: "group": expected a name or a number, got \[1\]'),
        ([True], 'line 1: "group": expected a name or a number, got True'),
        ([""], 'line 1: "group": expected a name or a number'),
        ([2.0**60], "may have been another whole number"),
    ],
)
def test_refuses_groups_that_are_incomplete_or_not_ids(groups, complaint):
    with pytest.raises(InputError, match=complaint):
        list(with_groups([Dataset.of(examples(groups))]))


def test_the_field_of_groups_is_a_key_or_a_field_of_all_elements():
    (by_key,) = with_groups([Dataset.of(examples([3, 4], "user"))], "user")
    assert by_key.groups.tolist() == [code_of(3), code_of(4)]
    elements = [{"user": "a", "x": 1}, {"user": "a", "x": 2}]
    one = Dataset.of([examples([9])[0].replace(elements=elements)])
    (by_field,) = with_groups([one], "user")
    assert by_field.groups.tolist() == [code_of("a")]
    for field, complaint in (("x", "differs between elements"), ("y", "expected the field")):
        with pytest.raises(InputError, match=f"line 1: group: .*{complaint}"):
            list(with_groups([by_field], field))
    (ungrouped,) = with_groups([Dataset.of(examples([None, None]))])
    assert ungrouped.groups is None


def test_datasets_keep_groups_in_slices_and_files(tmp_path):
    data = grouped(Dataset.of(examples([None] * 5)), ["a", "b", "a", "c", "c"])
    expected = [code_of(name) for name in "abacc"]
    assert data.groups.tolist() == expected and data[1:4].groups.tolist() == expected[1:4]
    assert Dataset.of(list(data)).groups.tolist() == expected and data[3].group == expected[3]
    stored.save([data[:2], data[2:]], tmp_path, "examples")
    assert stored.open_folder(tmp_path, TASK).groups.tolist() == expected
    assert stored.open_folder(tmp_path, TASK)[1:3].groups.tolist() == expected[1:3]
    with pytest.raises(InputError, match="a group for each of the 5 examples, got 4"):
        grouped(data, [1, 2, 3, 4])


def test_stored_examples_have_the_groups_of_the_field_that_is_asked_for(tmp_path):
    path = tmp_path / "f.jsonl"
    lines = [{"inputs": [[1], [2]], "outputs": [0], "group": k // 2, "user": k} for k in range(4)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for field, ids in (("", [0, 0, 1, 1]), ("user", [0, 1, 2, 3]), ("", [0, 0, 1, 1])):
        groups = stored.open_file(str(path), TASK, field).groups
        assert groups.tolist() == [code_of(k) for k in ids]
    fingerprints = {stored.open_file(str(path), TASK, f).fingerprint for f in ("", "user")}
    assert len(fingerprints) == 2
    text = tmp_path / "f.txt"
    text.write_text("1 2 output 1\n")
    assert stored.open_file(str(text), TASK).groups is None
    with pytest.raises(InputError, match=r'f\.txt:1: group: expected the field "user"'):
        stored.open_file(str(text), TASK, "user")


def test_groups_of_a_table_survive_the_way_to_lines_and_back(tmp_path):
    rows = [f"{k // 2},p{k // 4},{k},{k % 2}" for k in range(12)]
    table, lines, back = (str(tmp_path / name) for name in ("t.csv", "l.jsonl", "b.csv"))
    (tmp_path / "t.csv").write_text("\n".join(["set,person,x,y", *rows, ""]))
    named = ["--set-id=set", "--chosen=y", "--group=person"]
    assert run(["convert", table, lines, *named]) == 0
    first = json.loads((tmp_path / "l.jsonl").read_text().splitlines()[0])
    assert first == {"inputs": [{"x": 0}, {"x": 1}], "outputs": [1], "set": "0", "group": "p0"}
    assert run(["convert", lines, back, *named]) == 0
    columns = Columns(set_id="set", chosen="y", group="person")
    task = ptrnet.tasks.get("custom", center=(0.0,), spread=(1.0,))
    expected = [code_of(f"p{k // 2}") for k in range(6)]
    for path in (table, back):
        read = infer_sets(formats.table_of(path), columns)
        assert read[0].fields == ("x",) and read[1].groups.tolist() == expected
    assert Dataset.of(formats.read(lines, task, Columns())).groups.tolist() == expected
    assert Dataset.of(formats.read(lines, task)).groups is None  # groups are only read if asked for


def test_convert_refuses_a_group_without_a_table(tmp_path, capsys):
    path = tmp_path / "f.jsonl"
    path.write_text('{"inputs": [[0.1], [0.2]], "outputs": [0, 1]}\n')
    assert run(["convert", str(path), str(tmp_path / "f.txt"), "--task=sort", "--group=g"]) == 2
    assert "--group names a column of a long table, so it needs --set-id" in capsys.readouterr().err
