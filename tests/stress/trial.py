"""Trials of `make stress`. Each case is a pure function of the seed and its number."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

Outcome = str | Mapping[str, int]


@dataclass(frozen=True)
class Trial:
    """Many cases of one kind. A case that raises an error is a finding.

    Args:
        name: of the trial, PART/KIND.
        count: the cases of a whole run.
        prepare: makes in an empty folder what all cases share, and gives it.
        case: runs one case: what is shared, its random numbers, and an empty folder for its
            files. It gives the name of its outcome or, where it is many, how often each came.
    """

    name: str
    count: int
    prepare: Callable[[Path], Any]
    case: Callable[[Any, np.random.Generator, Path], Outcome]

    def cases(self, share: float) -> int:
        """Return the number of cases in a share of a whole run."""
        return max(1, round(self.count * share))

    def run(self, shared: Any, seed: int, k: int, folder: Path) -> Counter[str]:
        """Run case number k."""
        rng = np.random.default_rng([seed, crc32(self.name.encode()), k])
        outcome = self.case(shared, rng, folder)
        return Counter({outcome: 1} if isinstance(outcome, str) else outcome)


def one_line(error: BaseException) -> str:
    """Return the message of an error, which must be one clear line."""
    message = str(error)
    assert message and "\n" not in message and len(message) < 1000, repr(message[:2000])
    return message
