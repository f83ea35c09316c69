"""Lint, types, layers, what an import costs, and scores and examples that are up to date."""

import re
import runpy
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
MAX_BYTES = 6_000_000  # of a tracked file: shipped weights are the largest


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
def test_each_static_check_passes(command):
    result = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True)
    assert result.returncode == 0, (result.stdout + result.stderr).decode()[-3000:]


def test_modules_do_not_import_each_other_in_a_circle():
    """Including imports inside functions; lint-imports holds the layers."""
    graph = grimp.build_graph(
        "ptrnet", "ptrnet_lab", cache_dir=None, exclude_type_checking_imports=True
    )
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules


def test_no_tracked_file_is_large():
    result = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in result.stdout.decode().rstrip("\0").split("\0"):
        assert (ROOT / name).stat().st_size < MAX_BYTES, name


def test_results_contain_no_absolute_paths():
    for path in (ROOT / "results").glob("*.json"):
        assert not re.search(r"[ '\"]/(root|home|tmp|Users)/", path.read_text()), path


def test_subpackages_are_attributes_without_an_explicit_import():
    """docs/extending.md relies on it: `ptrnet.tasks.names()` after `import ptrnet`."""
    code = "import ptrnet; assert 'tasks' in dir(ptrnet) and 'hull' in ptrnet.tasks.names()"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_importing_ptrnet_and_help_do_not_import_torch_or_scipy():
    """The help of all commands imports the modules of all commands, also those of plug-ins."""
    code = (
        "import sys, ptrnet; assert not {'numpy', 'torch'} & sys.modules.keys();"
        "from ptrnet.cli import run; run(['solve', '--help']);"
        "assert 'ptrnet_lab' not in sys.modules; run(['--help']);"
        "assert not {'torch', 'scipy', 'scipy.optimize'} & sys.modules.keys();"
        "assert not {'ptrnet_lab.bench', 'ptrnet_lab.reproduce'} & sys.modules.keys()"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


def test_solving_one_instance_does_not_import_slow_packages():
    """Lightning takes seconds to import. torch imports sympy, 0.4 s, for meta tensors.

    No shipped model needs the lab.

    Models of problems import numba when they are loaded, because features of states are compiled.
    """
    code = (
        "import sys, numpy, ptrnet; from ptrnet import tasks, weights;"
        "list(map(ptrnet.load, set(weights.names()) - set(tasks.problem_names())));"
        "ptrnet.load('sort').solve([[0.2], [0.1]]);"
        "ptrnet.load('hull').solve(numpy.random.rand(200, 2));"
        "print(*{name.split('.')[0] for name in sys.modules} & {'joblib', 'lightning', "
        "'matplotlib', 'numba', 'ptrnet_lab', 'sympy'}, *{'torch._dynamo'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_scores_in_the_readme_equal_those_in_results():
    script = runpy.run_path(str(ROOT / "benchmarks" / "readme_scores.py"))
    _, rest = (ROOT / "README.md").read_text().split(script["BEGIN"])
    table, _ = rest.split(script["END"])
    assert table.strip().split("\n") == list(script["lines"]())


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_each_example_runs(script, tmp_path, monkeypatch, capsys):
    """Scripts that train read the number of steps and of examples from their arguments."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), "5", "100"])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
