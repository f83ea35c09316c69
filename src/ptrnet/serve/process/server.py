"""The process that serves: it closes what is idle, and finishes what it has accepted."""

import asyncio
import gc
import resource
import signal
import socket
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import FrameType

import numpy as np
import torch
import uvicorn

from ptrnet import runtime, weights
from ptrnet.errors import InputError, OutOfDistributionWarning
from ptrnet.kernels.eager import use_compiled_kernels
from ptrnet.serve.app import create_app
from ptrnet.serve.exact import exact_of
from ptrnet.serve.limits import Limits
from ptrnet.serve.process.listening import BACKLOG
from ptrnet.serve.process.protocol import BoundedProtocol
from ptrnet.serve.service import Served
from ptrnet.solver import Solver
from ptrnet.types import Example

IDLE_SECONDS = 60  # of a connection without a request, or with one whose headers do not come
LAST_SECONDS = 0.2  # for requests that are on their way when the service ends
LAST = (b"connection", b"close")


@dataclass(frozen=True)
class App:
    """What each process of a service is made of."""

    models: Sequence[str]  # as `weights.load` takes them
    limits: Limits
    token: str | None
    origins: Sequence[str]
    workers: int


def load_models(names: Sequence[str]) -> dict[str, Served]:
    """The models by the name in their address: of a folder or a hub id, the last part.

    Raises:
        InputError: no such model, or two of one name.
    """
    models: dict[str, Served] = {}
    for text in names:
        name = text if text in weights.names() else Path(text).resolve().name
        if name in models:
            raise InputError(f"--model {text}: there is one named {name} already")
        models[name] = Served(name, weights.load(text))
    return models


def run(app: App, models: dict[str, Served], listener: socket.socket) -> None:
    """Serves until SIGTERM; then finishes what was accepted, and raises the signal again.

    Requests wait for no compiled code if the models are warmed up.
    """
    warnings.simplefilter("ignore", OutOfDistributionWarning)  # each answer has its own
    runtime.share_arena()
    _allow_many_files()
    threads = None if app.workers == 1 else max(1, torch.get_num_threads() // app.workers)
    built = create_app(models, app.limits, token=app.token, origins=app.origins, threads=threads)
    config = uvicorn.Config(
        built,
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,  # defects and refused connections go to standard error
        access_log=False,
        backlog=BACKLOG,
        server_header=False,
    )
    # What is there by now stays: a full collection would walk through it every few seconds, and
    # keep all requests waiting for more than a tenth of a second.
    gc.freeze()
    Server(config).run([listener])


def warm_up(solver: Solver) -> None:
    """Loads compiled code: no request waits for it, nor for a compiler on a new machine.

    That is of the network, of the exact answers that traces have, and of the metrics.
    """
    use_compiled_kernels()
    model, task = solver.model, solver.task
    with torch.no_grad():
        weight = next(model.parameters())
        inputs = torch.rand(2, model.n or 4, model.features).to(weight)
        encoded = model.encode(inputs)
        model.step(encoded, encoded.state, inputs.new_zeros(len(inputs), 1, dtype=torch.int64))
    if task.labellers:
        n = model.n or max(task.min_elements, 4)
        example = Example(task.sample(np.random.default_rng(0), 1, n)[0])
        exact = exact_of(task, example)
        if exact is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OutOfDistributionWarning)
                solver.evaluate([example.replace(outputs=np.array(exact["outputs"]))])


class Server(uvicorn.Server):
    """A server that no idle connection stays with."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._idle: dict[object, tuple[object, float]] = {}  # by connection: last request, since
        self._is_terminated = False

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until SIGTERM, and raises it again at the end.

        SIGTERM is the server's from the beginning: a handler that exits would leave the coroutine
        that serves made and never begun, of which Python warns.
        """
        former = signal.signal(signal.SIGTERM, self.handle_exit)
        try:
            super().run(sockets)
        finally:
            signal.signal(signal.SIGTERM, former)
        if self._is_terminated:
            signal.raise_signal(signal.SIGTERM)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The handler of signals while this serves."""
        self._is_terminated |= sig == signal.SIGTERM
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        if counter % 10 == 0:
            self._close_idle()
        return await super().on_tick(counter)

    def _close_idle(self) -> None:
        now = monotonic()
        idle: dict[object, tuple[object, float]] = {}
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)  # the last request and its response
            if cycle is not None and not cycle.response_complete:
                continue
            last, since = self._idle.get(connection, (cycle, now))
            idle[connection] = (cycle, since if last is cycle else now)
            if now - idle[connection][1] > IDLE_SECONDS:
                connection.transport.close()
        self._idle = idle

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Takes no more connections, and reads what has been sent on those that there are.

        Responses from now on say that they are the last on their connection.
        """
        for server in self.servers:
            server.close()
        state = self.server_state
        state.default_headers = [*state.default_headers, LAST]
        for connection in state.connections:
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_started:
                cycle.default_headers = state.default_headers
        await asyncio.sleep(LAST_SECONDS)
        await super().shutdown(sockets)


def _allow_many_files() -> None:
    """As many connections as the system lets a process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
