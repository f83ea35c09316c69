"""The program: where it listens, and how it ends."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from http.client import HTTPConnection, HTTPResponse
from multiprocessing import get_context
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import uvicorn

from ptrnet import models
from ptrnet.cli import run
from ptrnet.errors import InputError
from ptrnet.kernels import eager
from ptrnet.serve.limits import Limits
from ptrnet.serve.process import server, workers
from ptrnet.serve.process.listening import address_of, listen, read_token
from ptrnet.serve.process.server import App, load_models
from ptrnet.serve.process.signals import sigterm_exits

SECONDS = 60  # the deadline of whatever is waited for
INSTANCES = np.random.default_rng(0).random((300, 20, 2)).tolist()


@pytest.fixture
def model(small, tmp_path):
    small(scale=8.0).save_pretrained(tmp_path / "mine")
    return str(tmp_path / "mine")


@pytest.fixture
def served():
    """A function: starts the program; returns the process and its address."""
    processes = []

    def start(*arguments):
        command = [sys.executable, "-m", "ptrnet", "serve", "--port", "0", *arguments]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        deadline = threading.Timer(SECONDS, process.kill)  # which ends the line, too
        deadline.start()
        line = process.stderr.readline()
        deadline.cancel()
        match = re.search(r"serves mine at (http://127\.0\.0\.1:\d+)$", line)
        assert match, f"no address within {SECONDS} seconds: {line}"
        return process, match[1]

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stderr.close()


def ask(address, body):
    """The status and document of an answer, and what it says of its connection."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=SECONDS)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/models/mine/solve", json.dumps(body), headers)
    response = connection.getresponse()
    document = json.load(response)
    connection.close()
    return response.status, document, response.getheader("Connection")


def begin(connection, body):
    """Sends the head of a request; its body is accepted from then on, and still to come."""
    connection.sendall(
        b"POST /v1/models/mine/solve HTTP/1.1\r\nHost: mine\r\nExpect: 100-continue\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert connection.recv(len(interim), socket.MSG_WAITALL) == interim


def is_listening(host, port):
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=SECONDS):
        return True
    return False


def test_sigterm_finishes_what_was_accepted(served, model, small):
    process, address = served("--model", model)
    answered = []

    def send():
        answered.append(ask(address, {"instances": INSTANCES, "decoder": "beam"}))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    deadline, in_queue = time.monotonic() + SECONDS, 0
    while in_queue < 6 and not answered:
        assert time.monotonic() < deadline, f"{in_queue} requests in the queue"
        with urllib.request.urlopen(f"{address}/metrics", timeout=SECONDS) as response:
            text = response.read().decode()
        in_queue = float(re.search(r"^ptrnet_queue (\S+)", text, re.MULTILINE)[1])
    process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(SECONDS)
    assert process.wait(SECONDS) == 0 and process.stderr.read() == ""
    assert len(answered) == 6
    for status, document, _ in answered:
        assert status == 200 and len(document["answers"]) == len(INSTANCES)


def test_connections_are_closed_from_sigterm_on(served, model):
    """The body of a request comes when the service listens no more."""
    process, address = served("--model", model)
    host, port = address.removeprefix("http://").split(":")
    body = json.dumps({"instances": INSTANCES}).encode()
    with socket.create_connection((host, port), timeout=SECONDS) as connection:
        begin(connection, body)
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + SECONDS
        while is_listening(host, port):
            assert time.monotonic() < deadline, "it still listens"
            time.sleep(0.01)
        connection.sendall(body)
        with HTTPResponse(connection) as response:
            response.begin()
            assert len(json.load(response)["answers"]) == len(INSTANCES)
            assert response.status == 200 and response.getheader("Connection") == "close"
    assert process.wait(SECONDS) == 0 and process.stderr.read() == ""


def test_idle_connections_are_closed(monkeypatch):
    """One that never sent a request, and one that rests after its response; not a busy one."""
    monkeypatch.setattr(server, "IDLE_SECONDS", 5)
    clock = iter((0, 3, 6, 9, 12, 15))
    monkeypatch.setattr(server, "monotonic", lambda: next(clock))

    class Connection:
        pass

    def connection(cycle):
        closed = []
        transport = SimpleNamespace(close=lambda: closed.append(True))
        made = Connection()
        made.cycle, made.transport, made.closed = cycle, transport, closed
        return made

    busy, answered, next_one = (SimpleNamespace(response_complete=k > 0) for k in range(3))
    silent, at_work, resting, active = map(connection, (None, busy, answered, answered))
    made = server.Server(uvicorn.Config("none"))
    made.server_state.connections = {silent, at_work, resting, active}
    for k in range(3):
        active.cycle = answered if k % 2 else next_one  # another request each time
        made._close_idle()
    assert silent.closed and resting.closed
    assert not at_work.closed and not active.closed


def test_sigterm_before_the_first_step(monkeypatch):
    """It raised where the coroutine that serves was made and not begun, of which Python warned."""
    begin = uvicorn.server.asyncio_run

    def begin_late(*arguments, **options):
        signal.raise_signal(signal.SIGTERM)
        return begin(*arguments, **options)

    async def app(scope, receive, send):
        raise AssertionError("nobody asks")

    monkeypatch.setattr(uvicorn.server, "asyncio_run", begin_late)
    config = uvicorn.Config(app, lifespan="off", log_config=None)
    with socket.create_server(("127.0.0.1", 0)) as listener, sigterm_exits():
        with pytest.raises(SystemExit) as stopped:
            server.Server(config).run([listener])
        assert stopped.value.code == 0
        assert signal.getsignal(signal.SIGTERM).__qualname__.startswith("sigterm_exits")


def test_a_port_in_use_is_one_line(model, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", "--model", model, "--port", str(port)]) == 2
    message = f"ptrnet: --port {port}: cannot listen there at 127.0.0.1: Address already in use\n"
    assert capsys.readouterr() == ("", message)


def test_workers_serve_one_address(served, model):
    process, address = served("--model", model, "--workers", "2")
    for _ in range(3):
        assert ask(address, {"instances": INSTANCES[:2]})[0] == 200
    with urllib.request.urlopen(f"{address}/metrics", timeout=SECONDS) as response:
        assert 'ptrnet_instances_total{model="mine"} 6.0' in response.read().decode()
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 0 and process.stderr.read() == ""


def test_a_worker_that_dies_is_replaced(monkeypatch, capsys):
    """Here a worker sleeps; the third is the first that replaces one, and then all end."""
    started = []

    def start(app, listener):
        target, arguments = (sys.exit, (7,)) if not started else (time.sleep, (60,))
        process = get_context("spawn").Process(target=target, args=arguments)
        process.start()
        started.append(process)
        if len(started) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return process

    monkeypatch.setattr(workers, "_start", start)
    monkeypatch.setattr(workers, "PAUSE", 0.01)
    app = App([], Limits(), None, [], workers=2)
    with pytest.raises(SystemExit) as left, sigterm_exits():
        workers.run_workers(app, socket.create_server(("127.0.0.1", 0)))
    assert left.value.code == 0 and len(started) == 3
    assert "a worker ended with 7: another" in capsys.readouterr().err
    assert not any(process.is_alive() for process in started[:2])
    started[2].terminate()  # it was not handed over when the signal came
    started[2].join()
    assert workers.SHARED not in os.environ


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--host 0.0.0.0", "--host 0.0.0.0: others reach the service there: expected --token-file"),
        ("--host ::", "--host ::: others reach"),
        ("--host nowhere.invalid", "--host nowhere.invalid: "),
        ("--token-file none.txt", "--token-file: none.txt: cannot be read: No such file"),
        ("--queue 0", "--queue: expected a number above 0, got 0"),
        ("--answer-seconds nan", "--answer-seconds: expected a number above 0, got nan"),
        ("--allow-origin example.org", "--allow-origin: expected such as https://example.org"),
        ("--model hulll --port 0", "unknown model 'hulll'; did you mean 'hull'?"),
        ("--model sort --model sort --port 0", "--model sort: there is one named sort already"),
        ("--port 70000", "--port"),
        ("--workers 0", "--workers"),
    ],
)
def test_what_cannot_be_served_is_one_line(arguments, message, capsys):
    assert run(["serve", *arguments.split()]) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.count("\n") == 1 and printed.out == ""


def test_responses_wait_for_no_acknowledgement():
    with listen("127.0.0.1", 0, has_token=False) as listener:
        with socket.create_connection(listener.getsockname()):
            connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_token_opens_other_hosts(tmp_path):
    path = tmp_path / "token"
    path.write_text("a-token-of-some-length\n")
    assert read_token(str(path)) == "a-token-of-some-length"
    for text in ("", "short", "two words of a token", "ä" * 20, "a" * 20 + "\nb" * 20):
        path.write_text(text)
        with pytest.raises(InputError, match="expected one word of 16 ASCII"):
            read_token(str(path))
    path.write_bytes(b"\xff" * 20)
    with pytest.raises(InputError, match="not text"):
        read_token(str(path))
    with listen("0.0.0.0", 0, has_token=True) as listener:
        assert address_of(listener).startswith("http://0.0.0.0:")
    with listen("localhost", 0, has_token=False) as listener:
        assert listener.getsockname()[1] > 0


def test_models_are_named_by_the_last_part_of_their_path(model):
    loaded = load_models(["sort", model])
    assert list(loaded) == ["sort", "mine"]
    assert loaded["sort"].solver.card.startswith("# sort")


@pytest.mark.parametrize("name", models.names())
def test_every_model_is_warmed_up(small, name, monkeypatch):
    monkeypatch.setattr(eager, "_steps", 0)
    solver = small(model=name)
    network = solver.model
    before = [parameter.clone() for parameter in network.parameters()]
    server.warm_up(solver)
    assert eager.is_loaded_for(1)
    assert all(map(torch.equal, before, network.parameters()))
    assert all(parameter.grad is None for parameter in network.parameters())
