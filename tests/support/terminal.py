"""Run a process whose standard error is a terminal."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_at_terminal(
    command: Sequence[str | Path], environment: Mapping[str, str]
) -> tuple[int, str, str]:
    """Return the exit code, standard output, and the output on the terminal."""
    ours, theirs = os.openpty()
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, **environment}
        )
        os.write(theirs, b"\a")  # the process has closed the terminal
        printed = b""
        while not printed.endswith(b"\a"):
            printed += os.read(ours, 2**12)
    finally:
        os.close(ours)
        os.close(theirs)
    return done.returncode, done.stdout.decode(), printed[:-1].decode()
