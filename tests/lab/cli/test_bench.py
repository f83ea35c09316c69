"""`ptrnet bench`: one table or one document, whatever the speed."""

import json

import pytest

SMALL = ("--n", 6, "--batch-size", 4, "--hidden-size", 8, "--repeats", 2)


@pytest.fixture
def quick(monkeypatch):
    """A small product, and no other processes."""
    from ptrnet_lab.bench import harness, roofline

    monkeypatch.setattr(harness, "peaks", lambda setups, title: [1.0] * len(setups))
    monkeypatch.setitem(roofline._SIDE, "cpu", 32)


def test_json_is_one_document_with_the_median_step(quick, ptrnet):
    code, out, err = ptrnet("bench", "train", "--model", "ptr-net", *SMALL, "--json")
    document = json.loads(out)
    assert code == 0 and not err
    assert set(document) == {"machine", "versions", "seed", "step_ms", "rows"}
    (row,) = document["rows"]
    assert document["step_ms"] == row["step_ms"] == row["median_ms"] > 0
    assert row["low_ms"] <= row["median_ms"] <= row["high_ms"] and row["runs"] == 2
    assert row["roofline_share"] == row["roofline_ms"] / row["step_ms"]
    assert row["other"]["name"] == "naive float32" and row["other"]["ratio"] > 0
    assert document["machine"]["cores"] >= 1 and document["versions"]["ptrnet"] == "0.1.0"


def test_the_table_names_the_measured_machine(quick, ptrnet):
    code, out, _ = ptrnet("bench", "score", *SMALL)
    assert code == 0
    machine, versions, blank, facts, heads, row = out.splitlines()
    assert " cores, bfloat16: " in machine and "torch " in versions and not blank
    assert facts.startswith("score: n 6, steps 13, batch size 4, hidden size 8")
    assert heads.split()[:2] == ["ms", "quartiles"] and row.startswith("8 units ")


def test_ptrnet_bench_measures_in_other_processes(ptrnet):
    code, out, err = ptrnet(
        *("bench", "label", "--task", "sort", "--n", 6, "--repeats", 1, "--json")
    )
    assert code == 0 and not err, err
    (row,) = json.loads(out)["rows"]
    assert row["labeller"] == "argsort" and row["rate"] > 0 and 10 < row["peak_mb"] < 10_000


def test_refused_in_one_line(ptrnet):
    code, out, err = ptrnet("bench", "slove")
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "unknown measurement 'slove'; did you mean 'solve'" in err
    code, out, err = ptrnet("bench", "label", "--precision", "float32", "--json")
    assert (code, out) == (2, "") and "--precision has no effect with bench label" in err
