"""Several processes that serve at one address; the first of them watches over the others."""

import os
import signal
import socket
import sys
import tempfile
import time
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from threading import Thread
from typing import TYPE_CHECKING

from prometheus_client.multiprocess import mark_process_dead

from ptrnet import runtime
from ptrnet.serve.metrics import SHARED
from ptrnet.serve.process.signals import sigterm_exits

if TYPE_CHECKING:
    from ptrnet.serve.process.server import App

PAUSE = 1.0  # seconds before a process that has died is replaced


def run_workers(app: "App", listener: socket.socket) -> None:
    """Serves in `app.workers` processes until SIGTERM; then they finish what they accepted."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[SHARED] = folder
        processes: list[SpawnProcess] = []
        try:
            for _ in range(app.workers):
                processes.append(_start(app, listener))  # one by one: SIGTERM may come between
            while True:
                wait([process.sentinel for process in processes])
                time.sleep(PAUSE)
                for k, process in enumerate(processes):
                    if not process.is_alive():
                        code = process.exitcode
                        print(f"ptrnet: a worker ended with {code}: another", file=sys.stderr)
                        mark_process_dead(process.pid)  # type: ignore[no-untyped-call]
                        processes[k] = _start(app, listener)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            listener.close()
            for process in processes:
                process.terminate()
            for process in processes:
                process.join()
            del os.environ[SHARED]


def _start(app: "App", listener: socket.socket) -> SpawnProcess:
    process = get_context("spawn").Process(target=_work, args=(app, listener), daemon=True)
    process.start()
    return process


def _work(app: "App", listener: socket.socket) -> None:
    """A worker's whole life."""
    runtime.tune()
    from ptrnet.serve.process.server import load_models, run, warm_up

    Thread(target=_end_with_parent, daemon=True).start()
    try:
        with sigterm_exits():
            models = load_models(app.models)
            for model in models.values():
                warm_up(model.solver)
            run(app, models, listener)
    except KeyboardInterrupt:
        sys.exit(130)


def _end_with_parent() -> None:
    """Ends this process when the first one is gone, which may have been killed."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
