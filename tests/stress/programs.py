"""Start the program quickly, by forking a process that has imported everything."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.stress import failing_disk

_NONE: Mapping[str, str] = {}
SECONDS = 300  # seconds that any wait may take
_PRELOADED = ["ptrnet.cli.app", "ptrnet.training.run", "ptrnet.labels", "ptrnet.serve.app"]
_PRELOADED += ["ptrnet.solver", "ptrnet.weights", "uvicorn"]


def _run(arguments: Sequence[str], log: str, environment: Mapping[str, str]) -> None:
    """Run a forked process in its own session, with all output in a file."""
    os.setsid()
    os.environ.update(environment)
    with Path(log).open("wb") as stream, Path(os.devnull).open("rb") as nothing:
        for target, source in ((0, nothing), (1, stream), (2, stream)):
            os.dup2(source.fileno(), target)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from ptrnet.cli import run

    sys.argv = ["ptrnet", *arguments]
    code = run(list(arguments))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)  # otherwise multiprocessing would wait for idle workers


class Program:
    """A running `ptrnet ARGUMENTS`."""

    def __init__(
        self, arguments: Sequence[object], log: Path, environment: Mapping[str, str] = _NONE
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        failing_disk.preload()
        self.log, self._arguments = log, [str(a) for a in arguments]
        self.process = context.Process(target=_run, args=(self._arguments, str(log), environment))
        self.process.start()
        self.began = time.monotonic()

    def wait(self) -> int:
        """Wait for its end, and return the exit code."""
        self.process.join(SECONDS)
        assert self.process.exitcode is not None, f"no end in {SECONDS} seconds: {self.text()}"
        return self.process.exitcode

    def stop(self, deadly: signal.Signals) -> None:
        """Send it a signal, and wait for its end."""
        assert self.process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, deadly)
        self.wait()

    def text(self) -> str:
        """Return everything that it has printed."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def check_alone(self) -> None:
        """Raise an error if processes that it started still run seconds after its end."""
        deadline = time.monotonic() + 60
        while alive := list(self._others()):
            assert time.monotonic() < deadline, f"processes left: {alive}"
            time.sleep(0.1)

    def _others(self) -> Iterator[str]:
        command = ["ps", "-o", "stat=,pid=,args=", "-s", str(self.process.pid)]
        for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
            if not line.startswith("Z"):
                yield line


def run(arguments: Sequence[object], log: Path) -> float:
    """Run the program, require exit code 0, and return the seconds that it took."""
    program = Program(arguments, log)
    code = program.wait()
    assert code == 0, f"exit {code} of {arguments}: {program.text()[-2000:]}"
    return time.monotonic() - program.began
