"""How far a trial has come: kept on the disk, so that a machine that was stopped goes on."""

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

    seed: int
    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[int] = field(default_factory=list)  # numbers of cases
    seconds: float = 0.0
    commit: str = ""  # of the last case

    @classmethod
    def read(cls, folder: Path, seed: int) -> "Progress":
        """What the folder of a trial has; nothing where its cases were of another seed."""
        path = folder / "state.json"
        stored = cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls(seed)
        stored.outcomes = Counter(stored.outcomes)
        return stored if stored.seed == seed else cls(seed)

    def save(self, folder: Path) -> None:
        """Writes it to the folder of a trial."""
        with atomic_path(folder / "state.json") as temporary:
            temporary.write_text(json.dumps(vars(self), indent=1) + "\n", encoding="utf-8")


def commit() -> str:
    """The commit that is tested; with a + where files have been changed since."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    described = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return described.stdout.strip() or "unknown"
