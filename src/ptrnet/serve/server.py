"""Processes of the service: bind the address, load the models, and run uvicorn.

uvicorn parses HTTP, closes idle connections, finishes accepted requests on SIGTERM, and starts and
restarts the workers. A proxy has to enforce other limits, which `docs/deploy.md` lists.
"""

import gc
import ipaddress
import json
import math
import os
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import uvicorn
from fastapi import FastAPI
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.supervisors import Multiprocess

from ptrnet import runtime, weights
from ptrnet.errors import AmbiguousInputWarning, InputError, OutOfDistributionWarning
from ptrnet.kernels import use_compiled_kernels
from ptrnet.models.base import full_lengths
from ptrnet.serve.app import create_app
from ptrnet.serve.limits import Limits
from ptrnet.serve.metrics import SHARED
from ptrnet.serve.tracing import exact_of
from ptrnet.solver import Solver
from ptrnet.types import Example

SETTINGS = "PTRNET_SERVE_SETTINGS"  # environment variable with the `Settings` of a worker, as JSON
MIN_TOKEN = 16  # characters
MAX_HEAD = 65_536  # bytes of a request's first line and headers
KEEP_ALIVE_SECONDS = 60  # until uvicorn closes an idle connection
HEALTH_SECONDS = 60  # a worker may take this long to react, because it may compile kernels


@dataclass(frozen=True)
class Settings:
    """Settings that each process of the service needs."""

    models: Sequence[str]  # in the format of `weights.load_named`
    limits: Limits
    token_file: str | None
    origins: Sequence[str]
    workers: int


def serve(settings: Settings, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the accepted requests.

    Raises:
        InputError: a setting is wrong, or the address cannot be used.
        KeyboardInterrupt: after Ctrl-C, when the last request is answered.
        SystemExit: after SIGTERM, with exit code 0, if there is only one worker.
    """
    for origin in settings.origins:
        check_origin(origin)
    token = None if settings.token_file is None else read_token(settings.token_file)
    options: dict[str, Any] = {
        "http": "h11",  # httptools is faster, but does not limit the size of headers
        "h11_max_incomplete_event_size": MAX_HEAD,
        "ws": "none",
        "lifespan": "on",
        "log_config": None,  # only warnings and errors are logged, to standard error
        "access_log": False,
        "server_header": False,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": math.ceil(
            settings.limits.body_seconds + settings.limits.answer_seconds
        ),
    }
    with listen(host, port, token is not None) as listener:
        models = weights.load_named(settings.models)
        started = f"ptrnet serves {', '.join(models)} at {address_of(listener)}"
        if settings.workers == 1:
            app = prepare(settings, models)
            print(started, file=sys.stderr)
            # uvicorn raises SIGTERM again after the last answer. Then exit with code 0.
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
            uvicorn.Server(uvicorn.Config(app, **options)).run([listener])
            return
        del models  # loaded only to report errors early; each worker loads the models again
        with tempfile.TemporaryDirectory() as folder:
            os.environ[SHARED] = folder
            os.environ[SETTINGS] = json.dumps(asdict(settings))
            # Workers read this when they import torch. They share the cores.
            os.environ["OMP_NUM_THREADS"] = str(max(1, torch.get_num_threads() // settings.workers))
            print(started, file=sys.stderr)
            config = uvicorn.Config(
                "ptrnet.serve.server:create_worker",
                factory=True,
                workers=settings.workers,
                timeout_worker_healthcheck=HEALTH_SECONDS,
                **options,
            )
            _Workers(config, [listener]).run()


class _Workers(Multiprocess):
    """Supervisor of uvicorn's workers. After Ctrl-C, `run` raises KeyboardInterrupt."""

    is_interrupted = False

    def keep_subprocess_alive(self) -> None:
        """Replace dead workers, and remove their requests from the metric of the queue."""
        before = self.processes.copy()
        super().keep_subprocess_alive()
        for process in before:
            if process not in self.processes:
                mark_process_dead(process.pid)  # type: ignore[no-untyped-call]

    def handle_int(self) -> None:
        self.is_interrupted = True
        super().handle_int()

    def run(self) -> None:
        super().run()
        if self.is_interrupted:
            raise KeyboardInterrupt


def create_worker() -> FastAPI:
    """Return the app of a worker, with the settings that `serve` has put into the environment."""
    runtime.tune()
    settings = json.loads(os.environ[SETTINGS])
    settings = Settings(**{**settings, "limits": Limits(**settings["limits"])})
    return prepare(settings, weights.load_named(settings.models))


def prepare(settings: Settings, models: Mapping[str, Solver]) -> FastAPI:
    """Warm up the models, tune this process for serving, and return the app."""
    warm_up(models)
    warnings.simplefilter("ignore", OutOfDistributionWarning)  # the answers carry these warnings
    warnings.simplefilter("ignore", AmbiguousInputWarning)  # each request would add to the log
    runtime.share_arena()
    token = None if settings.token_file is None else read_token(settings.token_file)
    app = create_app(models, settings.limits, token=token, origins=settings.origins)
    # All objects that exist now will stay. Without this call, a full garbage collection would visit
    # these objects every few seconds. Each time, requests would wait for more than 0.1 s.
    gc.freeze()
    return app


def warm_up(models: Mapping[str, Solver]) -> None:
    """Load compiled code. If this machine has not compiled the code yet, compile it now.

    Networks, metrics and the exact answers of traces use compiled code. Without this call, the
    first requests would wait until the code is loaded.
    """
    use_compiled_kernels()
    for solver in models.values():
        model, task = solver.model, solver.task
        with torch.no_grad():
            inputs = model.example_inputs(2, model.n or 4).to(next(model.parameters()))
            encoded = model.encode(inputs)
            model.step(encoded, encoded.state, inputs.new_zeros(len(inputs), 1, dtype=torch.int64))
            one = inputs[:1]  # some networks have other code for a single instance
            model.greedy(one, full_lengths(one), full_lengths(one))
        if not task.facts.labellers:
            continue
        n = model.n or max(task.facts.min_elements, 4)
        example = Example(task.sample(np.random.default_rng(0), 1, n)[0])
        exact = exact_of(task, example)
        if exact is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OutOfDistributionWarning)
                solver.evaluate([example.replace(outputs=np.array(exact.outputs))])


def read_token(path: str) -> str:
    """Return the token in a file.

    Raises:
        InputError: the file cannot be read, or it is not one word of at least `MIN_TOKEN` printable
            ASCII characters.
    """
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise InputError(f"--token-file: {path}: cannot be read: {reason}") from None
    is_word = token.isascii() and token.isprintable() and " " not in token
    if not is_word or len(token) < MIN_TOKEN:
        raise InputError(
            f"--token-file: {path}: expected one word of {MIN_TOKEN} ASCII characters or more"
        )
    return token


def check_origin(origin: str) -> None:
    """Check that a text is the origin of a web page. Raises InputError."""
    if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
        raise InputError(
            f"--allow-origin: expected an origin such as https://example.org, got {origin}"
        )


def listen(host: str, port: int, has_token: bool) -> socket.socket:
    """Return a listening socket. Connections wait in its backlog until the service accepts them.

    uvicorn could bind the address itself. But if the port is in use, it would only log the error.
    Raises InputError if the address does not exist, the port cannot be used, or other machines can
    reach the address although there is no token.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise InputError(f"--host {host}: {error.args[-1]}") from None
    if not has_token and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        raise InputError(
            f"--host {host}: other machines reach the service there, so it needs --token-file, "
            "with the token that their requests carry"
        )
    try:
        listener = socket.create_server(address, family=family, backlog=1024)
    except OSError as error:
        raise InputError(
            f"--port {port}: cannot listen there at {host}: {os.strerror(error.errno or 0)}"
        ) from None
    # Accepted connections inherit TCP_NODELAY. asyncio sets this option only for its own sockets.
    # Without this option, the second packet of a response waits 40 ms for the client's
    # acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
