"""Runs trials, keeps their counts, and what it takes to see a finding again."""

import shutil
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ptrnet.progress import track
from tests.stress.state import Progress, State, commit
from tests.stress.trial import Trial

SAVE_EVERY = 5.0  # seconds
MAX_KEPT = 10  # findings of a trial that are kept on the disk


def run_trials(trials: Sequence[Trial], state: State, share: float, folder: Path) -> None:
    """Runs the share of each trial's cases that has not been run yet.

    Args:
        trials: what is run.
        state: of former runs; goes on from there.
        share: of the cases of a whole run.
        folder: of the cases' files, and of the findings.
    """
    version = commit()
    for trial in trials:
        progress = state.of(trial.name)
        count = max(1, round(trial.count * share))
        if progress.cases >= count:
            print(f"{trial.name}: {progress.cases} cases were run before", file=sys.stderr)
            continue
        shared = _prepared(trial, folder)
        saved = time.monotonic()
        remaining = range(progress.cases, count)
        for k in track(remaining, f"{trial.name:20}", count, progress.cases):
            began = time.monotonic()
            _run_case(trial, shared, state.seed, k, progress, folder)
            progress.seconds += time.monotonic() - began
            progress.cases, progress.commit = k + 1, version
            if time.monotonic() - saved > SAVE_EVERY:
                state.save()
                saved = time.monotonic()
        state.save()


def run_one(trial: Trial, seed: int, k: int, folder: Path) -> None:
    """Runs one case again, as it was found. Raises what it raises."""
    shared = _prepared(trial, folder)
    print(f"{trial.name}:{k}: {dict(trial.run(shared, seed, k, _emptied(folder / 'case')))}")


def table(state: State) -> Iterator[str]:
    """The counts of all trials, in lines."""
    yield f"| {'trial':24} | {'cases':>9} | {'seconds':>8} | {'findings':>8} | outcomes |"
    yield "|---|---|---|---|---|"
    for name, p in state.trials.items():
        outcomes = ", ".join(
            f"{count:,} {outcome}" for outcome, count in sorted(p.outcomes.items())
        )
        yield (
            f"| {name:24} | {p.cases:9,} | {p.seconds:8,.1f} | {len(p.findings):8} | {outcomes} |"
        )


def _prepared(trial: Trial, folder: Path) -> Any:
    return trial.prepare(_emptied(folder / "shared"))


def _run_case(
    trial: Trial, shared: Any, seed: int, k: int, progress: Progress, folder: Path
) -> None:
    scratch = _emptied(folder / "case")
    try:
        progress.outcomes += trial.run(shared, seed, k, scratch)
    except Exception:
        progress.findings.append(k)
        if len(progress.findings) <= MAX_KEPT:
            _keep(trial, seed, k, scratch, folder / "findings")


def _keep(trial: Trial, seed: int, k: int, scratch: Path, folder: Path) -> None:
    """Copies the files of a case, beside what was raised and the command that runs it again."""
    target = folder / f"{trial.name.replace('/', '-')}-{k}"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copytree(scratch, target / "case", symlinks=True)
    again = f"python -m tests.stress --seed {seed} --case {trial.name}:{k}"
    text = f"{again}\n\n{traceback.format_exc()}"
    (target / "finding.txt").write_text(text, encoding="utf-8")
    print(f"\nfinding: {trial.name}:{k}: kept in {target}", file=sys.stderr)


def _emptied(folder: Path) -> Path:
    """The folder, with nothing in it."""
    if not folder.is_dir() or any(folder.iterdir()):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    return folder
