"""`ptrnet tune`."""

import shlex
from pathlib import Path

import pytest

pytest.importorskip("optuna")

WORDS = ["tune", "--data", "orders.csv", "--set-id", "order", "--chosen", "bought"]
WORDS += ["--group", "store", "--steps", "2", "--batch-size", "4", "--ensemble", "1"]
WORDS += ["--folds", "2", "--output", "tuned"]


@pytest.fixture(autouse=True)
def orders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{k},s{k % 4},{(k * 7 + j * 5) % 11},{int(j == k % 3)}"
        for k in range(16)
        for j in range(3)
    ]
    Path("orders.csv").write_text("\n".join(["order,store,price,bought", *rows, ""]))


def test_the_command_reports_and_its_last_line_trains(ptrnet):
    code, out, err = ptrnet(*WORDS, "--trials", "2")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("16 examples in 4 groups, 2 folds; 2 trials, ")
    assert lines[2].startswith("defaults ")
    assert [line.partition(":")[0] for line in err.splitlines()[-2:]] == ["trial 0", "trial 1"]
    assert "with the defaults; best" in err and "1 trial and " in err
    assert ptrnet(*shlex.split(lines[-1])[1:])[:2] == (0, "tuned/model\n")
    again = ptrnet(*WORDS, "--trials", "2")
    assert again[:2] == (0, out) and "the search is finished, with 2 trials" in again[2]


def test_an_interrupt_says_how_to_go_on(ptrnet, monkeypatch):
    from ptrnet.training import tuning

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "fold_scores", interrupted)
    code, out, err = ptrnet(*WORDS)
    assert (code, out) == (130, "") and err.endswith("tuned: stopped; the same command goes on\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--folds", "5"], "folds: orders.csv has 4 groups, which are too few for 5 folds"),
        (["--trials", "0"], "trials: expected a whole number of 1 or more, got 0"),
        (["--set-id", "none"], "none"),
        (["--lr", "1"], "did you mean --learning-rate"),
        (["--weights", "hull"], "No such option: --weights"),
        (["--data", "none.csv"], "none.csv: cannot be read"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(ptrnet, refused, words, message):
    refused(ptrnet(*WORDS, *words), message)
    assert not Path("tuned").exists()
