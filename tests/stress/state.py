"""Keep the progress of a trial on the disk, so that a stopped run can resume."""

import json
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ptrnet.files import atomic_path

ROOT = Path(__file__).parents[2]


@dataclass
class Progress:
    """The results of the first `cases` cases of a trial."""

    seed: int
    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[int] = field(default_factory=list)  # numbers of cases
    seconds: float = 0.0
    commit: str = ""  # time of the last case

    @classmethod
    def read(cls, folder: Path, seed: int) -> "Progress":
        """Read the progress from a trial's folder; start anew if its cases have another seed."""
        path = folder / "state.json"
        stored = cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls(seed)
        stored.outcomes = Counter(stored.outcomes)
        return stored if stored.seed == seed else cls(seed)

    def save(self, folder: Path) -> None:
        """Write the progress to a trial's folder."""
        with atomic_path(folder / "state.json") as temporary:
            temporary.write_text(json.dumps(vars(self), indent=1) + "\n", encoding="utf-8")


def commit() -> str:
    """Return the tested commit, with a + if files have changed since."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    described = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return described.stdout.strip() or "unknown"
