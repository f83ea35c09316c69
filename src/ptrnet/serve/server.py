"""The processes of the service: where they listen, what they load, and how uvicorn runs them.

uvicorn reads HTTP, closes idle connections, finishes accepted requests on SIGTERM, and starts and
watches the workers. `docs/deploy.md` lists the limits that it leaves to a proxy.
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
from uvicorn.supervisors import Multiprocess

from ptrnet import runtime, weights
from ptrnet.errors import InputError, OutOfDistributionWarning
from ptrnet.kernels.eager import use_compiled_kernels
from ptrnet.serve.app import create_app
from ptrnet.serve.limits import Limits
from ptrnet.serve.metrics import SHARED
from ptrnet.serve.tracing import exact_of
from ptrnet.solver import Solver
from ptrnet.types import Example

SETTINGS = "PTRNET_SERVE_SETTINGS"  # the variable through which a worker gets its `Settings`
MIN_TOKEN = 16  # characters
MAX_HEAD = 65_536  # bytes of a request's first line and headers
KEEP_ALIVE_SECONDS = 60  # until a connection that has had a response, and has no request, is closed
HEALTH_SECONDS = 60  # in which a worker has to react; it may have to compile code when it starts


@dataclass(frozen=True)
class Settings:
    """What each process of a service needs to know."""

    models: Sequence[str]  # as `weights.load_named` takes them
    limits: Limits
    token_file: str | None
    origins: Sequence[str]
    workers: int


def serve(settings: Settings, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C, and finish the requests that were accepted before.

    Raises:
        InputError: a setting is wrong, or the address cannot be used.
        KeyboardInterrupt: on Ctrl-C, after the last answer.
    """
    for origin in settings.origins:
        check_origin(origin)
    token = None if settings.token_file is None else read_token(settings.token_file)
    options: dict[str, Any] = {
        "http": "h11",  # bounds the size of headers, which the faster httptools does not
        "h11_max_incomplete_event_size": MAX_HEAD,
        "ws": "none",
        "lifespan": "on",
        "log_config": None,  # only warnings and defects are logged, on standard error
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
            # uvicorn raises SIGTERM again after the last answer. Then the program has done its job.
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
            uvicorn.Server(uvicorn.Config(app, **options)).run([listener])
            return
        del models  # each worker has its own
        with tempfile.TemporaryDirectory() as folder:
            os.environ[SHARED] = folder
            os.environ[SETTINGS] = json.dumps(asdict(settings))
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
    """uvicorn's workers. After Ctrl-C and the last answer, they raise KeyboardInterrupt."""

    is_interrupted = False

    def handle_int(self) -> None:
        self.is_interrupted = True
        super().handle_int()

    def run(self) -> None:
        super().run()
        if self.is_interrupted:
            raise KeyboardInterrupt


def create_worker() -> FastAPI:
    """Return the app of a worker, whose settings `serve` has put into the environment."""
    runtime.tune()
    settings = json.loads(os.environ[SETTINGS])
    settings = Settings(**{**settings, "limits": Limits(**settings["limits"])})
    return prepare(settings, weights.load_named(settings.models))


def prepare(settings: Settings, models: Mapping[str, Solver]) -> FastAPI:
    """Prepare this process for serving, and return the app."""
    warm_up(models)
    warnings.simplefilter("ignore", OutOfDistributionWarning)  # each answer carries its own
    runtime.share_arena()
    token = None if settings.token_file is None else read_token(settings.token_file)
    workers = settings.workers
    threads = None if workers == 1 else max(1, torch.get_num_threads() // workers)
    app = create_app(
        models, settings.limits, token=token, origins=settings.origins, threads=threads
    )
    # The objects that exist now will stay. A full collection would walk through them every few
    # seconds, and delay all requests by more than a tenth of a second.
    gc.freeze()
    return app


def warm_up(models: Mapping[str, Solver]) -> None:
    """Load the compiled code that the models need, and compile it on a new machine.

    That is the code of the networks, of the exact answers in traces, and of the metrics. Otherwise
    the first requests would wait for it.
    """
    for solver in models.values():
        use_compiled_kernels()
        model, task = solver.model, solver.task
        with torch.no_grad():
            weight = next(model.parameters())
            inputs = torch.rand(2, model.n or 4, model.features).to(weight)
            encoded = model.encode(inputs)
            model.step(encoded, encoded.state, inputs.new_zeros(len(inputs), 1, dtype=torch.int64))
        if not task.labellers:
            continue
        n = model.n or max(task.min_elements, 4)
        example = Example(task.sample(np.random.default_rng(0), 1, n)[0])
        exact = exact_of(task, example)
        if exact is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OutOfDistributionWarning)
                solver.evaluate([example.replace(outputs=np.array(exact.outputs))])


def read_token(path: str) -> str:
    """Return the token in a file.

    Raises:
        InputError: no such file, or not one word of at least 16 visible ASCII characters.
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
    """Refuse a text that is not the origin of a web page."""
    if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
        raise InputError(
            f"--allow-origin: expected an origin such as https://example.org, got {origin}"
        )


def listen(host: str, port: int, has_token: bool) -> socket.socket:
    """Return a socket that listens. Connections wait in it until the service accepts them.

    uvicorn could bind the address itself, but reports a port in use only in its log.

    Raises:
        InputError: no such address, the port is in use, or other machines reach the address and
            there is no token.
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
    # Accepted connections inherit the option. asyncio sets it only for sockets that it has made;
    # without it, the second packet of a response waits 40 ms for the client's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the address of a socket as a browser takes it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
