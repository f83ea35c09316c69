"""Run many random cases of a kind: `make stress` all of them, `make test` one of each kind.

A case is a pure function of the seed, the name of the test and its number. These variables of the
environment choose the cases: STRESS_SHARE (of those of a whole run), STRESS_SEED and STRESS_CASE.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from tests.stress import failing_disk
from tests.support.fork_server import ForkServer

SHARE, SEED, CASE = (os.environ.get(f"STRESS_{name}") for name in ("SHARE", "SEED", "CASE"))
Case = Callable[[np.random.Generator, Path], str | Mapping[str, int]]


@pytest.fixture
def try_cases(request, tmp_path, record_property):
    """Return a function that runs cases, of which a whole run has `count`, and counts outcomes.

    A case takes its random numbers and an empty folder for its files, and returns the name of its
    outcome, or how often each outcome came. An error in a case is a finding.
    """

    def run(case: Case, count: int) -> None:
        name, seed, outcomes = request.node.name, int(SEED or 0), Counter()
        numbers = range(max(1, round(count * float(SHARE or 0))))
        for k in numbers if CASE is None else [int(CASE)]:
            folder = tmp_path / "case"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                outcome = case(np.random.default_rng([seed, crc32(name.encode()), k]), folder)
            except Exception as error:
                error.add_note(
                    f"The files of case {k} are in {folder}. To run it again:\n"
                    f"STRESS_SEED={seed} STRESS_CASE={k} python -m pytest '{request.node.nodeid}'"
                )
                raise
            outcomes += Counter({outcome: 1} if isinstance(outcome, str) else outcome)
        record_property("outcomes", dict(outcomes))

    return run


@pytest.fixture(scope="session")
def programs():
    """Processes that have imported everything. Their disk can be made to fail."""
    modules = "cli", "training.run", "labels", "serve.app", "solver", "weights"
    with pytest.MonkeyPatch.context() as patch:
        if failing_disk.library():
            patch.setenv("LD_PRELOAD", str(failing_disk.library()))
        server = ForkServer("import uvicorn\n" + "\n".join(f"import ptrnet.{m}" for m in modules))
    yield server
    server.close()


def pytest_terminal_summary(terminalreporter):
    """Print the outcomes of a run of `make stress`."""
    if SHARE is not None:
        for report in terminalreporter.getreports("passed"):
            for _, outcomes in report.user_properties:
                told = ", ".join(f"{n:,} {name}" for name, n in sorted(outcomes.items()))
                terminalreporter.write_line(f"{report.nodeid}: {report.duration:,.0f} s: {told}")
