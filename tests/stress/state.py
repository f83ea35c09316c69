"""How far each trial has come: kept on the disk, so that a machine that was stopped goes on."""

import json
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ptrnet.files import atomic_path

ROOT = Path(__file__).parents[2]


@dataclass
class Progress:
    """What is known of the first `cases` cases of a trial."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[int] = field(default_factory=list)  # numbers of cases
    seconds: float = 0.0
    commit: str = ""  # of the last case


class State:
    """The progress of all trials of one seed, in a file."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.seed = path, seed
        self.trials: dict[str, Progress] = {}
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            if stored["seed"] == seed:
                self.trials = {name: Progress(**row) for name, row in stored["trials"].items()}
                for progress in self.trials.values():
                    progress.outcomes = Counter(progress.outcomes)

    def of(self, name: str) -> Progress:
        """The progress of a trial, made where there is none."""
        return self.trials.setdefault(name, Progress())

    def save(self) -> None:
        """Writes the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        document = {"seed": self.seed, "trials": {n: vars(p) for n, p in self.trials.items()}}
        with atomic_path(self.path) as temporary:
            temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def commit() -> str:
    """The commit that is tested; with a + where files have been changed since."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    described = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return described.stdout.strip() or "unknown"
