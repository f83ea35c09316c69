"""Run the program in this process or, if the process matters, in its own."""

import io
import subprocess
import sys

import pytest

from ptrnet.cli import main, run


@pytest.fixture
def ptrnet(capsys):
    """Return a function from arguments to (exit code, standard output, standard error)."""

    def call(*arguments):
        code = run([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def streams(monkeypatch):
    """Like `ptrnet`, but through `main` and with standard streams of bytes."""

    def call(*arguments, input="", encoding="utf-8"):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(input.encode())), encoding=encoding)
        stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
        with monkeypatch.context() as patch, pytest.raises(SystemExit) as stopped:
            patch.setattr(sys, "argv", ["ptrnet", *(str(a) for a in arguments)])
            for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
                patch.setattr(sys, name, stream)
            main()
        outputs = []
        for stream in (stdout, stderr):
            stream.flush()
            outputs.append(stream.buffer.getvalue().decode())
        return stopped.value.code, *outputs

    return call


@pytest.fixture
def program():
    """Like `ptrnet`, but in its own process."""

    def call(*arguments, **options):
        command = [sys.executable, "-m", "ptrnet", *(str(a) for a in arguments)]
        options = {"text": True, **options}
        result = subprocess.run(command, capture_output=True, timeout=600, **options)
        return result.returncode, result.stdout, result.stderr

    return call


@pytest.fixture
def refused():
    """Return a function that checks for exit code 2, one line on standard error, and no output."""

    def check(outcome, message):
        code, out, err = outcome
        assert code == 2 and out == "", (code, out, err)
        assert err.startswith("ptrnet: ") and err.count("\n") == 1, err
        assert message in err, err

    return check


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
