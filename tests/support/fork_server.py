"""Fork processes that have already imported PyTorch, numba and ptrnet, because that is slow."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TIMEOUT = 600  # seconds, after which a process is killed
PROGRAM = "import sys; from ptrnet.cli import run; sys.exit(run(sys.argv[1:]))"

# Each line is a request: to start a child, which is answered by its process id, or to look whether
# one has ended, which is answered by its exit code or null.
_SERVER = """
import json, os, signal, sys, traceback
exec(sys.argv[1])

def run(request):
    os.setsid()
    signal.alarm(request["timeout"])
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    sys.argv[1:] = request["arguments"]
    for number, path in enumerate(request["streams"]):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
    code = 0
    try:
        exec(request["code"], {"__name__": "__main__"})
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        traceback.print_exc()
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

for line in sys.stdin:
    request = json.loads(line)
    if "code" in request:
        answer = os.fork()
        if not answer:
            run(request)
    else:
        process, status = os.waitpid(request["process"], os.WNOHANG)
        answer = os.waitstatus_to_exitcode(status) if process else None
    print(json.dumps(answer), flush=True)
"""


class Done(NamedTuple):
    """The result of a process, like that of `subprocess.run`."""

    returncode: int
    stdout: str
    stderr: str


class Process:
    """A started process in a session of its own, with the methods of `subprocess.Popen`."""

    def __init__(self, server: "ForkServer", pid: int, out: str, err: str) -> None:
        self.pid, self.returncode = pid, None
        self._server, self._out, self._err = server, Path(out), Path(err)

    @property
    def stdout(self) -> str:
        """What it has printed on standard output."""
        return self._out.read_text()

    @property
    def stderr(self) -> str:
        """What it has printed on standard error."""
        return self._err.read_text()

    def poll(self) -> int | None:
        """Return the exit code, or None if it runs."""
        if self.returncode is None:
            self.returncode = self._server.ask({"process": self.pid})
        return self.returncode

    def wait(self, seconds: float = TIMEOUT) -> int:
        """Wait for the end, and return the exit code."""
        deadline = time.monotonic() + seconds
        while self.poll() is None:
            assert time.monotonic() < deadline, f"no end in {seconds} seconds: {self.stderr}"
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it and the processes that it started, and wait for its end."""
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.wait()


class ForkServer:
    """A process that has run `imports`, and forks a child for each code."""

    def __init__(self, imports: str) -> None:
        command = [sys.executable, "-c", _SERVER, imports]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._folder, self._count = tempfile.TemporaryDirectory(), 0

    def ask(self, request: dict[str, object]) -> int | None:
        """Send a request, and return the answer."""
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def start(self, code: str, *arguments: object, cwd: Path, **environment: str) -> Process:
        """Start code with arguments in `sys.argv[1:]`, in a folder and a changed environment."""
        self._count += 1
        out, err = (f"{self._folder.name}/{self._count}.{name}" for name in ("out", "err"))
        for path in (out, err):
            Path(path).touch()  # so that it can be read before the child writes it
        request = {
            "code": code,
            "arguments": [str(argument) for argument in arguments],
            "folder": str(cwd),
            "environment": environment,
            "streams": [os.devnull, out, err],
            "timeout": TIMEOUT,
        }
        return Process(self, self.ask(request), out, err)

    def run(self, code: str, *arguments: object, cwd: Path, **environment: str) -> Done:
        """Run code to its end."""
        process = self.start(code, *arguments, cwd=cwd, **environment)
        return Done(process.wait(), process.stdout, process.stderr)

    def close(self) -> None:
        """End the process."""
        with self._server:
            self._server.kill()
        self._folder.cleanup()
