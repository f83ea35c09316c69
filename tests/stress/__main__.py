"""`make stress`: search for silent errors by many random cases (docs/reliability.md)."""

from ptrnet import runtime

runtime.tune()

import argparse  # noqa: E402
import importlib  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from tests.stress.lanes import folder_of, run_lanes  # noqa: E402
from tests.stress.runner import run_one, run_trial, table  # noqa: E402
from tests.stress.state import ROOT, Progress  # noqa: E402
from tests.stress.trial import Trial  # noqa: E402

PARTS = (
    "kills",
    "disk",
    "damage",
    "lines",
    "threads",
    "memory",
    "geometry",
    "digits",
)  # begin with the longest trials
FOLDER = ROOT / "runs" / "stress"


def trials_of(part: str) -> list[Trial]:
    """Return the trials of a part; for a name such as `damage/npy`, only that trial."""
    name = part.partition("/")[0]
    if name not in PARTS:
        sys.exit(f"unknown part {part!r} (known: {', '.join(PARTS)})")
    trials = importlib.import_module(f"tests.stress.parts.{name}").TRIALS
    chosen = [trial for trial in trials if part in (name, trial.name)]
    return chosen or sys.exit(f"unknown trial {part!r} (known: {[t.name for t in trials]})")


def main() -> int:
    """Return exit code 0 without findings, 1 with findings, and 130 after an interrupt."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--parts", nargs="*", default=PARTS, metavar="PART", help="or PART/KIND")
    parser.add_argument("--share", type=float, default=1.0, help="of the cases of a whole run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trials at a time")
    parser.add_argument("--trial", metavar="PART/KIND", help="runs one trial, in this process")
    parser.add_argument("--case", metavar="PART/KIND:K", help="runs one case again")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of state and findings")
    options = parser.parse_args()
    if options.case:
        name, _, k = options.case.rpartition(":")
        run_one(trials_of(name)[0], options.seed, int(k), folder_of(name, options.folder))
        return 0
    if options.trial:
        own = folder_of(options.trial, options.folder)
        run_trial(trials_of(options.trial)[0], options.seed, options.share, own)
        return 0
    trials = [trial for part in options.parts or PARTS for trial in trials_of(part)]
    folders = {trial.name: folder_of(trial.name, options.folder) for trial in trials}
    try:
        failed = run_lanes(trials, options.seed, options.share, options.folder, options.jobs)
    except KeyboardInterrupt:
        return 130
    finally:
        states = {name: Progress.read(own, options.seed) for name, own in folders.items()}
        print(*table(states), sep="\n")
    wrong = [folders[name] / "findings" for name, state in states.items() if state.findings]
    wrong += [folders[name] / "log" for name in failed]
    for path in wrong:
        print(f"see {path}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
