"""Run the commands in `docs/serve.md`, and compare the outputs that it shows."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ptrnet import weights
from ptrnet.cli import run as ptrnet
from ptrnet.serve.app import create_app
from ptrnet.serve.server import read_token
from tests.webpage.conftest import running

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "serve.md").read_text()
pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="no curl")


def commands(start):
    """Return the indented commands with this beginning, with their continued lines."""
    lines = re.findall(rf"^ {{4,6}}({start}(?:.*\\\n)*.*)$", GUIDE, re.MULTILINE)
    return [re.sub(r"\\\n\s+", "", line) for line in lines]


def documented(start):
    """Return the JSON document with this beginning."""
    (text,) = re.findall(rf"^ {{4}}({re.escape(start)}(?:.*\n)+?.*\}})\n\n", GUIDE, re.MULTILINE)
    return json.loads(text)


def run(command, address, folder):
    command = command.replace("http://127.0.0.1:8000/", address)
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "curl" in command else done.stdout


@pytest.fixture(scope="module")
def served():
    return {name: weights.load(name) for name in ("hull", "tsp", "sort")}


def test_requests_of_the_page_get_the_answers_of_the_page(served, tmp_path):
    questions, arrays = commands("curl --json"), commands("curl -H 'Content-Type")
    (saving,) = commands("python -c .import numpy")
    assert len(questions) == GUIDE.count("curl --json") == 4 and len(arrays) == 1
    with running(create_app(served)) as address:
        first, *others = (run(command, address, tmp_path) for command in questions)
        run(saving, address, tmp_path)
        many = run(arrays[0], address, tmp_path)
        refused = run(questions[0].replace("]}'", '], "decoder": "bean"}\''), address, tmp_path)
    expected = documented('{"task": "hull"')
    assert first.keys() == expected.keys()
    (answer,), (expected_answer,) = first["answers"], expected["answers"]
    likelihood = expected_answer.pop("log_likelihood")
    assert answer.pop("log_likelihood") == pytest.approx(likelihood, rel=0.02)
    assert answer == expected_answer
    assert [set(other) >= {"task", "model"} for other in others] == [True] * 3
    assert len(many["answers"]) == 500 and many["decoder"] == "beam"
    assert refused == documented('{"type": "about:blank"')


def test_the_tokens_commands_of_the_page_work(served, tmp_path):
    (making,) = commands("python -c .import secrets")
    (asking,) = commands("curl -H .Authorization")
    run(making, "", tmp_path)
    token = read_token(str(tmp_path / "token"))
    with running(create_app(served, token=token)) as address:
        asking = asking.replace("http://192.0.2.1:8000/", address)
        assert [model["name"] for model in run(asking, address, tmp_path)["models"]] == [*served]
        (without,) = [re.sub(r'-H "[^"]*"', "", asking)]
        assert run(without, address, tmp_path)["status"] == 401


def test_the_start_commands_of_the_page_work(tmp_path, small, monkeypatch, capsys):
    """Each command of serve.md and page.md, up to the point where uvicorn would run."""
    monkeypatch.chdir(tmp_path)
    small(scale=8.0).save_pretrained(tmp_path / "runs" / "my-model")
    (tmp_path / "token").write_text("0123456789abcdef")
    text = GUIDE + (DOCS / "page.md").read_text()
    lines = re.findall(r"^ {4}ptrnet (serve.*)$", text, re.MULTILINE)
    assert len(lines) == 4 and len({*lines}) == 3
    apps = []
    monkeypatch.setattr("uvicorn.Server.run", lambda server, _: apps.append(server.config.app))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    for line in {*lines}:
        words = shlex.split(re.sub(r" --port \d+", "", line))
        assert ptrnet([*words, "--port", "0"]) == 0
        said = capsys.readouterr().err
        assert ("my-model" in said) == ("my-model" in line) and " at http://" in said
        with TestClient(apps[-1]) as client:
            assert client.get("/healthz").status_code == 200
            assert client.get("/v1/models").status_code == (401 if "token" in line else 200)
