"""Run trials, count their cases, and keep what is needed to reproduce a finding."""

import shutil
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ptrnet.progress import track
from tests.stress.state import Progress, commit
from tests.stress.trial import Trial

SAVE_EVERY = 5.0  # seconds
MAX_KEPT = 10  # how many findings of a trial are kept on the disk


def run_trial(trial: Trial, seed: int, share: float, folder: Path) -> Progress:
    """Run those cases of a trial's share that have not run yet.

    Args:
        trial: what is run.
        seed: of the cases.
        share: of the cases of a whole run.
        folder: of the trial: its state, its cases' files, and its findings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    progress = Progress.read(folder, seed)
    count = trial.cases(share)
    if progress.cases >= count:
        print(f"{trial.name}: {progress.cases} cases were run before", file=sys.stderr)
        return progress
    shared = _prepared(trial, folder)
    version, saved = commit(), time.monotonic()
    try:
        for k in track(range(progress.cases, count), trial.name, count - progress.cases):
            began = time.monotonic()
            _run_case(trial, shared, k, progress, folder)
            progress.seconds += time.monotonic() - began
            progress.cases, progress.commit = k + 1, version
            if time.monotonic() - saved > SAVE_EVERY:
                progress.save(folder)
                saved = time.monotonic()
    finally:
        progress.save(folder)
    return progress


def run_one(trial: Trial, seed: int, k: int, folder: Path) -> None:
    """Run one case again. Errors of the case propagate."""
    shared = _prepared(trial, folder)
    print(f"{trial.name}:{k}: {dict(trial.run(shared, seed, k, _emptied(folder / 'case')))}")


def table(trials: Mapping[str, Progress]) -> Iterator[str]:
    """Return a table of the counts of all trials."""
    yield f"| {'trial':24} | {'cases':>9} | {'seconds':>8} | {'findings':>8} | outcomes |"
    yield "|---|---|---|---|---|"
    for name, p in trials.items():
        outcomes = ", ".join(
            f"{count:,} {outcome}" for outcome, count in sorted(p.outcomes.items())
        )
        yield (
            f"| {name:24} | {p.cases:9,} | {p.seconds:8,.1f} | {len(p.findings):8} | {outcomes} |"
        )


def _prepared(trial: Trial, folder: Path) -> Any:
    return trial.prepare(_emptied(folder / "shared"))


def _run_case(trial: Trial, shared: Any, k: int, progress: Progress, folder: Path) -> None:
    scratch = _emptied(folder / "case")
    try:
        progress.outcomes += trial.run(shared, progress.seed, k, scratch)
    except Exception:
        progress.findings.append(k)
        if len(progress.findings) <= MAX_KEPT:
            _keep(trial, progress.seed, k, scratch, folder / "findings")


def _keep(trial: Trial, seed: int, k: int, scratch: Path, folder: Path) -> None:
    """Copy the files of a case, and write its error and the command that runs it again."""
    target = folder / str(k)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copytree(scratch, target / "case", symlinks=True)
    again = f"python -m tests.stress --seed {seed} --case {trial.name}:{k}"
    text = f"{again}\n\n{traceback.format_exc()}"
    (target / "finding.txt").write_text(text, encoding="utf-8")
    print(f"\nfinding: {trial.name}:{k}: kept in {target}", file=sys.stderr)


def _emptied(folder: Path) -> Path:
    """Empty the folder, and return it."""
    if not folder.is_dir() or any(folder.iterdir()):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    return folder
