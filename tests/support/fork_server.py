"""Fork processes that have already imported PyTorch, numba and ptrnet, because that is slow."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

TIMEOUT = 240  # seconds, after which a process is killed

# Each line is a request. The server forks a child that runs its code, and answers the exit code.
_SERVER = """
import json, os, signal, sys, traceback
exec(sys.argv[1])

def run(request):
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
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

for line in sys.stdin:
    child = os.fork()
    if not child:
        run(json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Done(NamedTuple):
    """The result of a process, like that of `subprocess.run`."""

    returncode: int
    stdout: str
    stderr: str


class ForkServer:
    """A process that has run `imports`, and forks a child for each code."""

    def __init__(self, imports: str) -> None:
        command = [sys.executable, "-c", _SERVER, imports]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, code: str, *arguments: str, cwd: Path, **environment: str) -> Done:
        """Run code with arguments in `sys.argv[1:]`, in a folder and a changed environment."""
        with tempfile.TemporaryDirectory() as folder:
            streams = [os.devnull, *(str(Path(folder) / name) for name in ("out", "err"))]
            request = {
                "code": code,
                "arguments": arguments,
                "folder": str(cwd),
                "environment": environment,
                "streams": streams,
                "timeout": TIMEOUT,
            }
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            returncode = int(self._server.stdout.readline())
            return Done(returncode, *(Path(path).read_text() for path in streams[1:]))

    def close(self) -> None:
        """End the process."""
        with self._server:
            self._server.kill()
