"""Kill the service while it answers, and check the requests that it had accepted."""

import json
import re
import signal
import threading
import time
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.stress.programs import check_alone, only_in_stress, start
from tests.support.fork_server import TIMEOUT, ForkServer, Process
from tests.support.small_models import small_solver

CLIENTS = 4


class Model(NamedTuple):
    """A saved model, a request, and the answers to it."""

    folder: Path
    body: str
    answers: list[list[int]]


class Request(NamedTuple):
    """A request that was sent, and its response."""

    sent: float
    answers: list[list[int]] | None  # None if no response came


def _prepare(folder: Path) -> Model:
    solver = small_solver(scale=8.0)
    solver.save_pretrained(folder / "mine")
    points = np.random.default_rng(0).random((20, 8, 2))
    answers = [answer.tolist() for answer in solver.solve(list(points))]
    return Model(folder / "mine", json.dumps({"instances": points.tolist()}), answers)


def _start(server: ForkServer, model: Model) -> tuple[Process, str]:
    """Start the service; return it with its address."""
    program = start(server, ["serve", "--model", model.folder, "--port", "0"])
    deadline = time.monotonic() + TIMEOUT
    while not (line := re.search(r"serves mine at http://(\S+:\d+)", program.stderr)):
        assert time.monotonic() < deadline and program.poll() is None, program.stderr
        time.sleep(0.02)
    return program, line[1]


def _ask(address: str, model: Model) -> Request:
    connection = HTTPConnection(address, timeout=TIMEOUT)
    sent = float("inf")
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/models/mine/solve", model.body, headers)
        sent = time.monotonic()
        response = connection.getresponse()
        document = json.load(response)
        assert response.status in (200, 429, 503), document
        if response.status != 200:
            return Request(float("inf"), None)
        return Request(sent, [answer["outputs"] for answer in document["answers"]])
    except (OSError, HTTPException, ValueError):
        return Request(sent, None)
    finally:
        connection.close()


def _case(server: ForkServer, model: Model, rng: np.random.Generator, folder: Path) -> str:
    deadly = signal.SIGKILL if rng.random() < 0.5 else signal.SIGTERM
    program, address = _start(server, model)
    requests: list[Request] = []
    stop = threading.Event()

    def client() -> None:
        while not stop.is_set():
            requests.append(_ask(address, model))
            if requests[-1].answers is None:
                return

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    time.sleep(rng.uniform(0, 1))  # at random on purpose: the kill may come at any moment
    ended = time.monotonic()
    program.send_signal(deadly)
    program.wait()
    stop.set()
    for thread in threads:
        thread.join(TIMEOUT)
    check_alone(program)
    answered = [request for request in requests if request.answers is not None]
    assert all(request.answers == model.answers for request in answered), "other answers"
    if deadly == signal.SIGTERM:
        lost = [sent for sent, answers in requests if sent < ended - 0.05 and answers is None]
        assert not lost, f"{len(lost)} requests were accepted and not answered"
        assert program.returncode in (0, -signal.SIGTERM), program.stderr
        assert "Traceback" not in program.stderr, program.stderr
    again, address = _start(server, model)
    assert _ask(address, model).answers == model.answers
    again.send_signal(signal.SIGTERM)
    again.wait()
    check_alone(again)
    return deadly.name


@only_in_stress
def test_a_stopped_service_answers_what_it_has_accepted(programs, try_cases, tmp_path):
    try_cases(partial(_case, programs, _prepare(tmp_path)), 100)
