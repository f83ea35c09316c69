"""Test the stress runner itself, and run a few cases of each part, so that they keep working."""

import json
from pathlib import Path

import pytest

from tests.stress.__main__ import PARTS, trials_of
from tests.stress.lanes import run_lanes
from tests.stress.runner import run_one, run_trial, table
from tests.stress.state import Progress
from tests.stress.trial import Trial

# Only `make stress` runs trials that start processes or compile, because they take seconds.
SLOW = ("kills", "disk", "threads/processes", "memory/label")
QUICK = [trial for part in PARTS for trial in trials_of(part) if not trial.name.startswith(SLOW)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("trial", QUICK, ids=lambda trial: trial.name)
def test_each_kind_of_trial_runs(trial, tmp_path):
    (tmp_path / "shared").mkdir()
    shared = trial.prepare(tmp_path / "shared")
    for k in range(2):
        (tmp_path / str(k)).mkdir()
        assert trial.run(shared, 0, k, tmp_path / str(k)).total() >= 1


def made_up(wrong):
    """Make a trial of ten cases. Those in `wrong` are findings."""

    def case(shared, rng, folder: Path):
        (folder / "number").write_text(str(rng.integers(10**9)))
        cases.append(folder)
        if len(cases) - 1 in wrong:
            raise ValueError("wrong")
        return "right"

    cases = []
    return Trial("a/b", 10, lambda folder: None, case), cases


def test_a_stopped_trial_resumes(tmp_path, capsys):
    """Its counts equal those of an uninterrupted trial. A finished trial does not run again."""
    trial, cases = made_up({2, 7})
    run_trial(trial, 5, 0.5, tmp_path)
    assert len(cases) == 5
    run_trial(trial, 5, 1.0, tmp_path)
    progress = run_trial(trial, 5, 1.0, tmp_path)
    assert len(cases) == 10 and "10 cases were run before" in capsys.readouterr().err
    progress.seconds = 0.0  # because a busy machine takes longer
    assert (progress.cases, progress.findings, progress.outcomes) == (10, [2, 7], {"right": 8})
    assert (
        " ".join(list(table({"a/b": progress}))[-1].split()) == "| a/b | 10 | 0.0 | 2 | 8 right |"
    )
    assert json.loads((tmp_path / "state.json").read_text())["seed"] == 5
    assert Progress.read(tmp_path, 6).cases == 0


def test_a_finding_is_kept_and_can_be_seen_again(tmp_path, capsys):
    trial, cases = made_up({1, 2})
    run_trial(trial, 5, 0.2, tmp_path)
    kept = tmp_path / "findings" / "1"
    assert "ValueError: wrong" in (kept / "finding.txt").read_text()
    assert "python -m tests.stress --seed 5 --case a/b:1\n" in (kept / "finding.txt").read_text()
    number = (kept / "case" / "number").read_text()
    with pytest.raises(ValueError, match="wrong"):
        run_one(trial, 5, 1, tmp_path)
    assert (cases[-1] / "number").read_text() == number


def test_trials_run_in_parallel_processes(tmp_path):
    """Two real trials run; a third one, which does not exist, is reported as failed."""
    trials = trials_of("geometry")[:2]
    assert run_lanes(trials, 3, 0.002, tmp_path, jobs=2) == []
    for trial in trials:
        folder = tmp_path / trial.name.replace("/", "-")
        assert Progress.read(folder, 3).cases == trial.cases(0.002) == 20
    unknown = Trial("geometry/none", 1, lambda folder: None, lambda *case: "never")
    assert run_lanes([unknown], 3, 1.0, tmp_path, jobs=1) == ["geometry/none"]
    assert "unknown trial 'geometry/none'" in (tmp_path / "geometry-none" / "log").read_text()
