"""`ptrnet bench`: one table or one document, whatever the speed."""

import json

SMALL = ("--n", 6, "--batch-size", 4, "--hidden-size", 8, "--repeats", 2)


def test_json_is_one_document_with_the_median_step(program):
    code, out, err = program("bench", "train", *SMALL, "--precision", "float32", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert set(document) == {"machine", "versions", "seed", "step_ms", "rows"}
    (row,) = document["rows"]
    assert document["step_ms"] == row["step_ms"] == row["median_ms"] > 0
    assert row["low_ms"] <= row["median_ms"] <= row["high_ms"] and row["runs"] == 2
    assert row["roofline_share"] == row["roofline_ms"] / row["step_ms"]
    assert row["peak_mb"] > 10 and row["other"]["ratio"] > 0
    assert document["machine"]["cores"] >= 1 and document["versions"]["ptrnet"] == "0.1.0"


def test_the_table_says_on_what_it_was_measured(monkeypatch, ptrnet):
    monkeypatch.setattr("ptrnet.bench.score.peaks", lambda works, what: dict.fromkeys(works, 1.0))
    code, out, _ = ptrnet("bench", "score", *SMALL)
    assert code == 0
    machine, versions, blank, facts, heads, row = out.splitlines()
    assert " cores, bfloat16: " in machine and "torch " in versions and not blank
    assert facts.startswith("score: n 6, steps 13, batch size 4, hidden size 8")
    assert heads.split()[:2] == ["ms", "quartiles"] and row.startswith("8 units ")


def test_refused_in_one_line(ptrnet):
    code, out, err = ptrnet("bench", "slove")
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "unknown measurement 'slove'; did you mean 'solve'" in err
    code, out, err = ptrnet("bench", "label", "--precision", "float32", "--json")
    assert (code, out) == (2, "") and "--precision does nothing with bench label" in err
