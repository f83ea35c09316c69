"""`ptrnet evaluate`: fresh instances are those of `generate`, and rows by n are files of one n."""

import csv
import io
import json

import pytest


def evaluated(ptrnet, *arguments):
    code, out, err = ptrnet("evaluate", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_fresh_instances_are_those_of_generate(tmp_path, ptrnet, model):
    path = tmp_path / "a.jsonl"
    options = ("--n", "3-9", "--seed", "4")
    ptrnet("generate", "hull", "--count", "40", "--output", path, *options)
    expected = evaluated(ptrnet, "--model", model, path)
    fresh = evaluated(ptrnet, "hull", "--model", model, "--random", "40", *options)
    assert fresh == expected
    other = evaluated(ptrnet, "hull", "--model", model, "--random", "40", "--n", "3-9")
    assert other != expected


def test_rows_by_n_are_those_of_files_of_one_n(tmp_path, ptrnet, model):
    path = tmp_path / "a.jsonl"
    ptrnet("generate", "hull", "--n", "3-5", "--count", "40", "--output", path)
    document = evaluated(ptrnet, "--model", model, path)
    lines = path.read_text().splitlines()
    assert [row["n"] for row in document["by_n"]] == ["3", "4", "5"]
    for row in document["by_n"]:
        part = tmp_path / "part.jsonl"
        kept = [line for line in lines if len(json.loads(line)["inputs"]) == int(row["n"])]
        part.write_text("\n".join(kept) + "\n")
        alone = evaluated(ptrnet, "--model", model, part)
        assert "by_n" not in alone and alone["instances"] == row["instances"] == len(kept)
        for metric, expected in alone["metrics"].items():
            for key, value in expected.items():
                close = None if value is None else pytest.approx(value, rel=1e-4, abs=1e-6)
                assert row["metrics"][metric][key] == close, metric
    out = ptrnet("evaluate", "--model", model, path, "--csv")[1]
    table = list(csv.DictReader(io.StringIO(out)))
    assert [row["n"] for row in table if row["metric"] == "accuracy"] == ["all", "3", "4", "5"]
    assert float(table[0]["value"]) == document["metrics"]["accuracy"]["value"]
    text = ptrnet("evaluate", "--model", model, path)[1]
    assert [line.split()[0] for line in text.splitlines()[-4:]] == ["n", "3", "4", "5"]


def test_many_sizes_stand_together_in_ranges(ptrnet, model):
    document = evaluated(ptrnet, "--model", model, "--random", "200", "--n", "3-42")
    rows = document["by_n"]
    assert len(rows) == 12 and rows[0]["n"].startswith("3-")
    assert sum(row["instances"] for row in rows) == document["instances"] == 200


def test_points_are_drawn_as_asked(ptrnet, model):
    outs = [
        ptrnet("solve", "--model", model, "--random", "6", "--points", kind)[1]
        for kind in ("uniform", "grid")
    ]
    assert outs[0] == ptrnet("solve", "--model", model, "--random", "6")[1] != outs[1]
    options = ("--model", model, "--random", "20", "--n", "5")
    assert evaluated(ptrnet, *options) != evaluated(ptrnet, *options, "--points", "clustered")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a.txt", "--n", "5"], "--n goes with --random"),
        (["a.txt", "--points", "grid"], "--points goes with --random"),
        (["--random", "5", "--points", "gird"], "unknown --points 'gird'; did you mean 'grid'?"),
        (["--random", "5", "--n", "0"], "n: expected 1 <= A <= B"),
        (["--random", "5", "--csv", "--json"], "--csv and --json"),
    ],
)
def test_refused(ptrnet, model, options, message, refused):
    refused(ptrnet("evaluate", "--model", model, *options), message)
