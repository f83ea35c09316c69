"""Rows that the program trains once, tests, records, and does not repeat."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ptrnet import model_folder, tasks
from ptrnet.cli import run as ptrnet
from ptrnet.data import formats
from ptrnet.errors import InputError, OutputError
from ptrnet.training import run as training
from ptrnet.training.loop import LossCheck
from ptrnet_lab.reproduce import records, tables, testsets, trainings
from ptrnet_lab.reproduce.testsets import open_test_set


@pytest.fixture
def trained(monkeypatch):
    """Collect the recipes that are trained from now on."""
    calls, train = [], training.train
    monkeypatch.setattr(
        training, "train", lambda recipe, *a, **k: calls.append(recipe) or train(recipe, *a, **k)
    )
    return calls


def document(name="tiny-hulls"):
    return json.loads(Path(f"results/{name}.json").read_text())["records"]


def test_a_table_is_run_once(tiny, trained, capsys):
    assert ptrnet(["reproduce", "tiny/hulls", "--line", "ours", "--line", "best"]) == 0
    out, err = capsys.readouterr()
    assert len(trained) == 1  # both rows have the same recipe
    assert "3 of 3 tests, with 1 trainings" in err
    first, second, best = sorted(document(), key=lambda r: (r["line"] == "best", r["row"]))
    assert (first["model"], first["instances"], first["examples"]) == (second["model"], 200, 480)
    assert first["decoder"] == "beam 2, valid" and second["decoder"] == "greedy"
    measured = first["metrics"]["accuracy"]
    assert first["differences"]["accuracy"] == pytest.approx(100 * measured["value"] - 2.12)
    assert first["published"]["accuracy"] == 2.12 and second["differences"] == {}
    assert measured["low"] <= measured["value"] <= measured["high"] and measured["count"] == 200
    assert first["command"] == "ptrnet reproduce tiny/hulls/first --line ours"
    assert first["seed"] == 1 and first["minutes"] >= 0
    assert best["model"] == "hull" and best["metrics"]["accuracy"]["value"] > 0.98
    page = Path("results/tiny-hulls.md").read_text()
    shown = f"{100 * measured['value']:.1f} ("
    assert shown in page and shown in out and "| Ptr-Net | 5 | 5 | 200 | 2.12 |" in page

    before = document()
    assert ptrnet(["reproduce", "tiny/hulls", "--line", "ours", "--line", "best", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["tables"]["tiny/hulls"] == before
    assert err == "done before: 3 of 3 tests, in results; --again repeats them\n"
    assert len(trained) == 1 and document() == before
    assert ptrnet(["reproduce", "tiny/hulls/first", "--again"]) == 0
    assert len(trained) == 1  # tested again, but not trained again


def test_a_stopped_reproduction_is_resumed(tiny, trained, monkeypatch, capsys):
    put = records.put

    def stop(*arguments):
        put(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(records, "put", stop)
    assert ptrnet(["reproduce", "tiny/hulls"]) == 130
    assert capsys.readouterr().err.endswith("the same command continues\n")
    monkeypatch.setattr(records, "put", put)
    assert [r["row"] for r in document()] == ["first"]
    assert ptrnet(["reproduce", "tiny/hulls"]) == 0
    assert "1 of 2 tests, with 0 trainings" in capsys.readouterr().err
    assert [r["row"] for r in document()] == ["first", "second"]


def test_a_training_that_was_stopped_is_resumed(tiny, monkeypatch):
    recipe = tables.select("tiny/hulls/second")[0].lines["ours"].recipe
    folder = trainings.folder_of(recipe, Path("runs/reproduce"))
    whole = training.train(recipe, Path("whole")).model.state_dict()
    check = LossCheck.__call__

    def stop(self, step, *rest):
        check(self, step, *rest)
        if step == 15:
            raise KeyboardInterrupt

    monkeypatch.setattr(LossCheck, "__call__", stop)
    assert ptrnet(["reproduce", "tiny/hulls/second"]) == 130
    monkeypatch.setattr(LossCheck, "__call__", check)
    assert trainings.steps_done(folder) == 10
    assert ptrnet(["reproduce", "tiny/hulls/second"]) == 0
    resumed = model_folder.load(folder).model.state_dict()
    assert all((whole[name] == resumed[name]).all() for name in whole)


def test_tours_are_compared_with_algorithms(tiny):
    assert ptrnet(["reproduce", "tiny/tours/first", "--budget", "quick"]) == 0
    (record,) = document("tiny-tours")
    test = open_test_set(tasks.get("tsp"), 5, 100)
    exact = np.mean([_length(e.inputs, e.outputs) for e in test])
    assert record["algorithms"]["exact"] == pytest.approx(exact)
    assert record["algorithms"]["a1"] >= exact
    assert record["metrics"]["length"]["value"] >= exact and record["instances"] == 100
    assert record["command"].endswith("--line ours --budget quick")
    assert f"2.18; {record['algorithms']['a1']:.3f}" in Path("results/tiny-tours.md").read_text()


def _length(points, tour):
    steps = points[tour] - points[np.roll(tour, 1)]
    return np.hypot(*steps.T).sum()


def test_another_budget_or_seed_starts_another_training(tiny, trained, capsys):
    assert ptrnet(["reproduce", "tiny/hulls/first", "--seed", "5"]) == 0
    assert trained[0].run.seed == 5
    (record,) = document()
    assert record["seed"] == 5 and record["command"].endswith("--seed 5")
    assert ptrnet(["reproduce", "tiny/hulls/first"]) == 0  # not done yet with its own seed
    assert [r["seed"] for r in document()] == [1]


def test_the_list_shows_the_remaining_work(tiny, capsys):
    assert ptrnet(["reproduce", "tiny/hulls/first"]) == 0
    capsys.readouterr()
    assert ptrnet(["reproduce", "--list", "--json", "--line", "ours", "--line", "best"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    states = {(r["row"], r["line"]): r["done"] for r in rows}
    assert states.pop(("tiny/hulls/first", "ours")) is True and not any(states.values())
    assert ptrnet(["reproduce", "tiny", "--list"]) == 0
    out = capsys.readouterr().out
    assert "tiny/hulls/second  ours  to be tested" in out and "1 trainings to do: " in out


def test_figures_are_drawn_from_trained_models(tiny, capsys):
    pytest.importorskip("matplotlib")
    for kind in ("answers", "curves"):
        assert ptrnet(["reproduce", f"tiny/{kind}"]) == 0
        assert capsys.readouterr().err.endswith(f"results/tiny-{kind}.png\n")
        assert Path(f"results/tiny-{kind}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["tiny/answers", "--line", "paper"], "no row has a line paper"),
        (["tiny/hulls", "--line", "our"], "unknown line 'our'; did you mean 'ours'?"),
        (["tiny/hulls", "--budget", "fast"], "unknown budget 'fast'"),
        (["tiny/hulls/second", "--line", "best"], "no row has a line best"),
        (["tiny/hull"], "unknown table 'tiny/hull'; did you mean 'tiny/hulls'?"),
    ],
)
def test_refused_options_write_nothing(tiny, options, message, capsys):
    assert ptrnet(["reproduce", *options]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert not (tiny / "runs").exists() and not (tiny / "results").exists()


@pytest.mark.parametrize("text", ["", "[]", '{"records": [{"row": 1}]}', '{"table": "x"}'])
def test_a_file_that_holds_no_results_is_refused_and_kept(tiny, text, capsys):
    (tiny / "results").mkdir()
    (tiny / "results" / "tiny-hulls.json").write_text(text)
    assert ptrnet(["reproduce", "tiny/hulls"]) == 2
    assert "expected results of ptrnet reproduce; move it away" in capsys.readouterr().err
    assert (tiny / "results" / "tiny-hulls.json").read_text() == text


def test_a_test_set_is_labelled_once_and_checked(tiny, capsys):
    task = tasks.get("hull")
    begun = [threading.Thread(target=open_test_set, args=(task, 5, 150)) for _ in range(2)]
    for thread in begun:  # the second waits for the first
        thread.start()
    for thread in begun:
        thread.join()
    whole = open_test_set(task, 5, 150)
    (path,) = (tiny / "cache" / "ptrnet").glob("test-sets-*/*.txt")
    assert len(whole) == 150 and len(list(formats.read(str(path), task))) == 200
    stamp = path.stat().st_mtime_ns
    again = open_test_set(task, 5, 200)
    assert path.stat().st_mtime_ns == stamp
    assert all((a.inputs == b.inputs).all() for a, b in zip(whole, again, strict=False))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"1", b"2", 1))
    mended = open_test_set(task, 5, 200)
    assert path.read_bytes() == content
    assert "its checksum does not match; generated again" in capsys.readouterr().err
    assert all((a.inputs == b.inputs).all() for a, b in zip(mended, again, strict=True))


def test_a_cache_folder_that_cannot_be_written_is_refused_in_one_line(tiny, monkeypatch):
    (tiny / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tiny / "file"))
    with pytest.raises(OutputError, match=r"^no folder for test sets: .*; set XDG_CACHE_HOME$"):
        open_test_set(tasks.get("hull"), 5, 100)

    def refuse(path, *_):  # as in an existing folder that is read-only
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setenv("XDG_CACHE_HOME", str(tiny / "cache"))
    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(OutputError, match=r"^no folder for test sets: .*\.lock'; set XDG_CACHE"):
        open_test_set(tasks.get("hull"), 5, 100)


def test_other_shipped_weights_are_tested_again(tiny, monkeypatch, capsys):
    assert ptrnet(["reproduce", "tiny/hulls/first", "--line", "best"]) == 0
    assert ptrnet(["reproduce", "tiny/hulls/first", "--line", "best"]) == 0
    assert capsys.readouterr().err.count("best done") == 1
    monkeypatch.setattr("ptrnet_lab.reproduce.run.checksum", lambda path: "another")
    assert ptrnet(["reproduce", "tiny/hulls/first", "--line", "best"]) == 0
    assert capsys.readouterr().err.count("best done") == 1


def test_damaged_logs_cost_only_the_minutes(tiny):
    assert ptrnet(["reproduce", "tiny/hulls/first"]) == 0
    (log,) = Path("runs/reproduce").glob("*/logs/csv/*/metrics.csv")
    log.write_text("nonsense\n1\n")
    assert ptrnet(["reproduce", "tiny/hulls/first", "--again"]) == 0
    assert document()[0]["minutes"] is None and document()[0]["examples"] == 480


def test_a_shipped_model_has_no_curves(tiny, capsys):
    assert ptrnet(["reproduce", "tiny/curves", "--line", "best"]) == 2
    assert "tiny/curves: curves are of trainings" in capsys.readouterr().err
    assert not list(Path("results").glob("*.png"))


def record_of(row):
    facts = [row, "ours", "full", "0", "m", "greedy", 10, {"accuracy": {"value": 0.5}}, {}, {}, {}]
    return records.Record(*facts, "ptrnet", 1, "c", "machine", 1.5, 20)


def test_concurrent_reproductions_keep_all_records(tmp_path, monkeypatch):
    """Without a lock, a process would overwrite rows that others wrote after it had read."""
    write = records.write

    def slow(*arguments):
        time.sleep(0.05)
        write(*arguments)

    monkeypatch.setattr(records, "write", slow)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda row: records.put("a/b", tmp_path, record_of(row)), "abcd"))
    assert sorted(record.row for record in records.read("a/b", tmp_path)) == [*"abcd"]


def test_damaged_results_and_test_sets_are_noticed(tmp_path, monkeypatch, capsys):
    """Damage a number in the results, and make a checksum file invalid UTF-8."""
    record = record_of("a")
    records.write("a/b", tmp_path, [record])
    assert records.read("a/b", tmp_path) == [record]
    path = records.path_of("a/b", tmp_path, ".json")
    path.write_text(path.read_text().replace("0.5", "0.7"))
    with pytest.raises(InputError, match=r"damaged: its checksum does not match; move it away$"):
        records.read("a/b", tmp_path)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(testsets, "COUNT", 100)
    task = tasks.get("sort")
    before = testsets.open_test_set(task, 2, 100)
    (path,) = tmp_path.rglob("*.sha256")
    path.write_bytes(b"\xff" + path.read_bytes())
    capsys.readouterr()
    again = testsets.open_test_set(task, 2, 100)
    assert all((a.inputs == b.inputs).all() for a, b in zip(before, again, strict=True))
    assert capsys.readouterr().err.endswith("its checksum does not match; generated again\n")
