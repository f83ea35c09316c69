"""Progress bars appear on a terminal, and nowhere else."""

import subprocess
import sys

from tests.support.terminal import run_at_terminal

PROGRAM = """
import sys, time
from ptrnet import progress
progress.DELAY = 0.0
assert list(progress.track(range(4), "counting", 4)) == [0, 1, 2, 3]
with progress.Bar("adding", 6, 2) as bar:
    bar.add(1)
    bar.add(3)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"rich"}))
"""


def test_a_bar_counts_on_a_terminal():
    sizes = {"COLUMNS": "100", "TERM": "xterm"}
    code, out, said = run_at_terminal([sys.executable, "-c", PROGRAM], sizes)
    assert (code, out) == (0, "['rich']\n")
    assert "counting" in said and "4/4" in said and "/s" in said
    assert "adding" in said and "6/6" in said


def test_no_terminal_means_no_bar_and_no_import_of_rich():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"[]\n", b"")
