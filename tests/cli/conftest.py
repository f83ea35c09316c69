"""The program, run in this process or, where the process matters, in its own."""

import subprocess
import sys

import pytest

from ptrnet.cli import run


@pytest.fixture
def ptrnet(capsys):
    """A function: arguments to (exit code, standard output, standard error)."""

    def call(*arguments):
        code = run([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def program():
    """The same in a process of its own."""

    def call(*arguments, **options):
        command = [sys.executable, "-m", "ptrnet", *(str(a) for a in arguments)]
        options = {"text": True, **options}
        result = subprocess.run(command, capture_output=True, timeout=240, **options)
        return result.returncode, result.stdout, result.stderr

    return call


@pytest.fixture
def model(small, tmp_path):
    """The folder of a small untrained model of the hull."""
    small(seed=1, scale=8.0).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def points(tmp_path, ptrnet):
    """A file of 30 labelled hulls."""
    path = tmp_path / "points.txt"
    code, _, _ = ptrnet("generate", "hull", "--n", "3-9", "--count", "30", "--output", path)
    assert code == 0
    return path
