"""Programs that are started quickly, stopped at any moment, and leave no process behind."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.fork_server import PROGRAM, ForkServer, Process

IS_WHOLE = not {"STRESS_SHARE", "STRESS_CASE"}.isdisjoint(os.environ)
only_in_stress = pytest.mark.skipif(not IS_WHOLE, reason="takes seconds: make stress runs it")


def start(server: ForkServer, arguments: Sequence[object], **environment: str) -> Process:
    """Start `ptrnet ARGUMENTS`."""
    return server.start(PROGRAM, *arguments, cwd=Path.cwd(), **environment)


def run(server: ForkServer, arguments: Sequence[object]) -> float:
    """Run the program, require exit code 0, and return the seconds that it took."""
    began = time.monotonic()
    process = start(server, arguments)
    code = process.wait()
    assert code == 0, f"exit {code} of {arguments}: {process.stderr[-2000:]}"
    return time.monotonic() - began


def check_alone(process: Process) -> None:
    """Raise an error if processes that it started still run a minute after its end."""
    deadline = time.monotonic() + 60
    while alive := list(_others(process)):
        assert time.monotonic() < deadline, f"processes left: {alive}"
        time.sleep(0.1)


def _others(process: Process) -> Iterator[str]:
    command = ["ps", "-o", "stat=,pid=,args=", "-s", str(process.pid)]
    for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
        if not line.startswith("Z"):
            yield line


def one_line(error: BaseException) -> str:
    """Return the message of an error, which must be one clear line."""
    message = str(error)
    assert message and "\n" not in message and len(message) < 1000, repr(message[:2000])
    return message
