"""The processes: where they listen, how they end, and input that is refused before they start."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from http.client import HTTPConnection, HTTPResponse

import numpy as np
import pytest
import torch

from ptrnet import kernels, models
from ptrnet.cli import run
from ptrnet.errors import InputError
from ptrnet.kernels import boxes_cpu
from ptrnet.serve.server import address_of, listen, read_token, warm_up
from tests.support.fork_server import PROGRAM

SECONDS = 600  # seconds that any wait may take on a busy machine
INSTANCES = np.random.default_rng(0).random((120, 20, 2)).tolist()


@pytest.fixture
def model(small, tmp_path):
    small(scale=8.0).save_pretrained(tmp_path / "mine")
    return str(tmp_path / "mine")


@pytest.fixture
def served(fork_server, tmp_path):
    """Return a function that starts the program and returns the process and its address."""
    processes = []

    def start(*arguments):
        words = ["serve", "--port", "0", *arguments]
        process = fork_server.start(PROGRAM, *words, cwd=tmp_path)
        processes.append(process)
        deadline = time.monotonic() + SECONDS
        while not (line := process.stderr).endswith("\n"):
            assert process.poll() is None and time.monotonic() < deadline, f"no address: {line}"
            time.sleep(0.01)
        match = re.search(r"serves mine at (http://127\.0\.0\.1:\d+)$", line.strip())
        assert match, line
        return process, match[1]

    yield start
    for process in processes:
        process.kill()


def said_later(process):
    """Return what a service has printed below its address."""
    return process.stderr.partition("\n")[2]


def ask(address, body):
    """Return the status and the document of a response."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=SECONDS)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/models/mine/solve", json.dumps(body), headers)
    response = connection.getresponse()
    document = json.load(response)
    connection.close()
    return response.status, document


def in_queue(address):
    """Return the metric of the number of requests in the queue."""
    with urllib.request.urlopen(f"{address}/metrics", timeout=SECONDS) as response:
        text = response.read().decode()
    return float(re.search(r"^ptrnet_queue (\S+)", text, re.MULTILINE)[1])


def wait_for_queue(address, count):
    """Wait until that many requests are in the queue."""
    deadline = time.monotonic() + SECONDS
    while (number := in_queue(address)) < count:
        assert time.monotonic() < deadline, f"{number} requests in the queue"
        time.sleep(0.01)


def begin(connection, body):
    """Send the head of a request. The service accepts it and waits for its body."""
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


def test_sigterm_finishes_what_was_accepted(served, model):
    """Also a request whose body arrives after the signal."""
    process, address = served("--model", model)
    host, port = address.removeprefix("http://").split(":")
    answered = []

    def send():
        answered.append(ask(address, {"instances": INSTANCES, "decoder": "beam"}))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    wait_for_queue(address, 6)
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
            document = json.load(response)
    for thread in threads:
        thread.join(SECONDS)
    answered.append((response.status, document))
    assert process.wait(SECONDS) == 0 and said_later(process) == ""
    assert len(answered) == 7
    for status, document in answered:
        assert status == 200 and len(document["answers"]) == len(INSTANCES)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_finishes_what_was_accepted_and_exits_with_130(served, small, tmp_path, workers):
    """Once, each request with equal points added a line to the log."""
    small("delaunay", scale=8.0).save_pretrained(tmp_path / "mine")
    process, address = served("--model", str(tmp_path / "mine"), "--workers", workers)
    for k in range(4):
        points = [[0, 0], [1, 0], [0, 1], [1, 1]]
        assert ask(address, {"instances": [points + [points[k]]] * (k + 1)})[0] == 200
    answered = []
    body = {"instances": INSTANCES, "decoder": "beam"}
    thread = threading.Thread(target=lambda: answered.append(ask(address, body)))
    thread.start()
    wait_for_queue(address, 1)
    process.send_signal(signal.SIGINT)
    thread.join(SECONDS)
    assert process.wait(SECONDS) == 130 and said_later(process) == ""
    assert [status for status, _ in answered] == [200]


def test_headers_without_end_are_refused(served, model):
    _, address = served("--model", model)
    host, port = address.removeprefix("http://").split(":")
    heads = {
        "many headers": [b"X: " + b"a" * 1000 + b"\r\n"] * 2000,
        "a long header": [b"X: ", *[b"a" * 1000] * 2000],
        "a chunk's extension": [
            b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1;",
            *[b"a" * 1000] * 2000,
        ],
    }
    for name, head in heads.items():
        with socket.create_connection((host, port), timeout=SECONDS) as connection:
            received = b""
            with contextlib.suppress(ConnectionError):  # a reset may lose the response
                connection.sendall(b"POST /v1/models/mine/solve HTTP/1.1\r\nHost: mine\r\n")
                for part in head:
                    connection.sendall(part)
                received = connection.recv(1000)
            assert received[:12] in (b"", b"HTTP/1.1 400"), name
        assert ask(address, {"instances": INSTANCES[:1]})[0] == 200, name


def test_a_port_in_use_is_refused_in_one_line(model, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", "--model", model, "--port", str(port)]) == 2
    message = f"ptrnet: --port {port}: cannot listen there at 127.0.0.1: Address already in use\n"
    assert capsys.readouterr() == ("", message)


def workers_of(process):
    """Return the process ids of the workers."""
    command = ["pgrep", "-P", str(process.pid), "-f", "spawn_main"]
    return [int(pid) for pid in subprocess.run(command, capture_output=True).stdout.split()]


def test_workers_serve_one_address_and_are_replaced_if_killed(served, model):
    process, address = served("--model", model, "--workers", "2")
    for _ in range(3):
        assert ask(address, {"instances": INSTANCES[:2]})[0] == 200
    with urllib.request.urlopen(f"{address}/metrics", timeout=SECONDS) as response:
        assert 'ptrnet_instances_total{model="mine"} 6.0' in response.read().decode()

    def send():
        with contextlib.suppress(ConnectionError):  # the worker is killed
            ask(address, {"instances": INSTANCES, "decoder": "beam"})

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    wait_for_queue(address, 6)
    killed = workers_of(process)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    for thread in threads:
        thread.join(SECONDS)
    deadline = time.monotonic() + SECONDS
    while len(alive := workers_of(process)) < 2 or set(killed) & set(alive):
        assert time.monotonic() < deadline, "no other workers"
        time.sleep(0.1)
    assert ask(address, {"instances": INSTANCES[:2]})[0] == 200
    assert in_queue(address) == 0
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 0 and "Traceback" not in said_later(process)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--host 0.0.0.0", "--host 0.0.0.0: other machines reach the service there"),
        ("--host ::", "--host ::: other machines reach"),
        ("--host nowhere.invalid", "--host nowhere.invalid: "),
        ("--token-file none.txt", "--token-file: none.txt: cannot be read: No such file"),
        ("--queue 0", "--queue: expected a whole number above 0, got 0"),
        ("--answer-seconds nan", "--answer-seconds: expected a finite number above 0, got nan"),
        (
            "--allow-origin example.org",
            "--allow-origin: expected an origin such as https://example.org",
        ),
        ("--model hulll --port 0", "unknown model 'hulll'; did you mean 'hull'?"),
        ("--model sort --model sort --port 0", "sort: there is a model named sort already"),
        ("--port 70000", "--port"),
        ("--workers 0", "--workers"),
    ],
)
def test_wrong_options_are_refused_in_one_line(arguments, message, capsys):
    assert run(["serve", *arguments.split()]) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.count("\n") == 1 and printed.out == ""


def test_connections_send_packets_without_delay():
    with listen("127.0.0.1", 0, has_token=False) as listener:
        with socket.create_connection(listener.getsockname()):
            connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_token_allows_other_hosts(tmp_path):
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


@pytest.mark.parametrize("name", models.names())
def test_every_model_is_warmed_up(small, name, monkeypatch):
    monkeypatch.setattr(kernels, "_steps", 0)
    solver = small(model=name)
    network = solver.model
    before = [parameter.clone() for parameter in network.parameters()]
    warm_up({name: solver})
    assert kernels.may_use_compiled(1)
    assert all(map(torch.equal, before, network.parameters()))
    assert all(parameter.grad is None for parameter in network.parameters())


def test_the_code_for_a_single_page_is_warmed_up(small, monkeypatch):
    walked, walk = [], boxes_cpu.walk_page
    monkeypatch.setattr(boxes_cpu, "walk_page", lambda tables: walked.append(1) or walk(tables))
    warm_up({"pages": small(task="reading-order", model="box-ptr-net")})
    assert walked
