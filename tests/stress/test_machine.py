"""The machine itself, and a few cases of each of its parts, so that they do not rot."""

import json
from pathlib import Path

import pytest

from tests.stress.__main__ import PARTS, trials_of
from tests.stress.runner import run_one, run_trials, table
from tests.stress.state import State
from tests.stress.trial import Trial

# Those that start processes, or compile, take seconds: a whole run alone has them.
SLOW = ("kills", "disk", "damage/compiled", "threads/processes", "memory/label")
QUICK = [trial for part in PARTS for trial in trials_of(part) if not trial.name.startswith(SLOW)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("trial", QUICK, ids=lambda trial: trial.name)
def test_a_case_of_each_trial(trial, tmp_path):
    (tmp_path / "shared").mkdir()
    shared = trial.prepare(tmp_path / "shared")
    for k in range(2):
        (tmp_path / str(k)).mkdir()
        assert trial.run(shared, 0, k, tmp_path / str(k)).total() >= 1


def made_up(wrong):
    """A trial of ten cases, of which those in `wrong` are findings."""

    def case(shared, rng, folder: Path):
        (folder / "number").write_text(str(rng.integers(10**9)))
        cases.append(folder)
        if len(cases) - 1 in wrong:
            raise ValueError("wrong")
        return "right"

    cases = []
    return Trial("a/b", 10, lambda folder: None, case), cases


def test_a_machine_that_was_stopped_goes_on(tmp_path, capsys):
    """Its counts are those of one that was not, and a part that is done is not done again."""
    trial, cases = made_up({2, 7})
    run_trials([trial], State(tmp_path / "state.json", 5), 0.5, tmp_path)
    assert len(cases) == 5
    state = State(tmp_path / "state.json", 5)
    run_trials([trial], state, 1.0, tmp_path)
    run_trials([trial], state, 1.0, tmp_path)
    assert len(cases) == 10 and "10 cases were run before" in capsys.readouterr().err
    progress = state.of("a/b")
    assert (progress.cases, progress.findings, progress.outcomes) == (10, [2, 7], {"right": 8})
    assert " ".join(list(table(state))[-1].split()) == "| a/b | 10 | 0.0 | 2 | 8 right |"
    assert json.loads((tmp_path / "state.json").read_text())["seed"] == 5
    assert State(tmp_path / "state.json", 6).trials == {}


def test_a_finding_is_kept_and_can_be_seen_again(tmp_path, capsys):
    trial, cases = made_up({1, 2})
    run_trials([trial], State(tmp_path / "state.json", 5), 0.2, tmp_path)
    kept = tmp_path / "findings" / "a-b-1"
    assert "ValueError: wrong" in (kept / "finding.txt").read_text()
    assert "python -m tests.stress --seed 5 --case a/b:1\n" in (kept / "finding.txt").read_text()
    number = (kept / "case" / "number").read_text()
    with pytest.raises(ValueError, match="wrong"):
        run_one(trial, 5, 1, tmp_path)
    assert (cases[-1] / "number").read_text() == number
