"""The rules of the house: lint, types, floors, sizes, and a README that is true."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
LARGEST = 6_000_000


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["lint-imports", "--no-cache"],
    ],
    ids=lambda c: " ".join(c[:2]),
)
def test_checks(command):
    result = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True)
    assert result.returncode == 0, (result.stdout + result.stderr).decode()[-3000:]


def tracked():
    result = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [ROOT / name for name in result.stdout.decode().split("\0") if name]


def test_files_are_small_and_finished():
    words = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|NotImplemented" + r"Error)\b")
    for path in tracked():
        assert path.stat().st_size < LARGEST, path
        if path.suffix == ".py":
            text = path.read_text()
            assert not words.search(text), path
            assert text.count("\n") <= 320, path


def test_results_name_no_folder_of_a_machine():
    for path in (ROOT / "results").glob("*.json"):
        assert not re.search(r"[ '\"]/(root|home|tmp|Users)/", path.read_text()), path


def test_importing_ptrnet_does_not_import_torch():
    code = "import sys, ptrnet; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_packages_are_there_without_being_imported():
    """As docs/extending.md writes their names."""
    code = "import ptrnet; assert 'tasks' in dir(ptrnet) and 'hull' in ptrnet.tasks.names()"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_help_does_not_import_torch():
    code = (
        "import sys; from ptrnet.cli import run; run(['--help']); run(['solve', '--help']);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


def test_answering_imports_no_more_than_it_needs():
    """Lightning takes seconds, and sympy, which torch imports to draw what has no memory, 0.4."""
    code = (
        "import sys, ptrnet; list(map(ptrnet.load, ptrnet.weights.names()));"
        "ptrnet.load('sort').solve([[0.2], [0.1]]); print(*{name.split('.')[0] for name in "
        "sys.modules} & {'joblib', 'lightning', 'matplotlib', 'sympy'},"
        "*{'torch._dynamo'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_one_instance_is_answered_without_compiled_code():
    code = (
        "import sys, numpy, ptrnet; ptrnet.load('hull').solve(numpy.random.rand(200, 2));"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_readmes_scores_are_the_recorded_ones():
    tool = runpy.run_path(str(ROOT / "tools" / "readme_scores.py"))
    _, rest = (ROOT / "README.md").read_text().split(tool["BEGIN"])
    table, _ = rest.split(tool["END"])
    assert table.strip().split("\n") == list(tool["lines"]())


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(script, tmp_path, monkeypatch, capsys):
    """Those that train do so for 20 steps on 500 examples."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), "20", "500"])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
