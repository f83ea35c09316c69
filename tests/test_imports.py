"""What an import costs, and what it makes available."""

import ast
import subprocess
import sys

import pytest

from tests.support.fork_server import ForkServer


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
        "print(*{name.split('.')[0] for name in sys.modules} & {'joblib', 'lightning_fabric', "
        "'matplotlib', 'numba', 'ptrnet_lab', 'sympy'}, *{'torch._dynamo'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


EXAMPLES = 20 * '{"inputs": [[0, 0], [1, 0], [1, 1], [0.4, 0.5]], "outputs": [0, 1, 2]}\n'
TRAIN = "train --data d.jsonl --steps 1 --batch-size 4 --output run"


@pytest.fixture(scope="module")
def others_imported():
    """Processes that have imported large packages of others, and no module of ptrnet."""
    server = ForkServer("import numba, torch, typer, lightning_fabric.loggers")
    yield server
    server.close()


@pytest.mark.parametrize(
    ("program", "most"),
    [
        ("import ptrnet; ptrnet.load('hull').solve([[0, 0], [1, 0], [0, 1]])", 45),
        ("from ptrnet.cli import run; run(['solve', 'hull', 'points.csv'])", 57),
        (f"from ptrnet.cli import run; run({TRAIN.split()})", 86),
    ],
    ids=["load and solve", "ptrnet solve FILE", "ptrnet train --data"],
)
def test_common_uses_import_few_modules(program, most, tmp_path, others_imported):
    """Each module costs time at the start, and a reader who follows the journey reads it."""
    (tmp_path / "points.csv").write_text("0,0\n1,0\n0,1\n")
    (tmp_path / "d.jsonl").write_text(EXAMPLES)
    code = f"{program}; import sys; print([m for m in sys.modules if m.startswith('ptrnet')])"
    run = others_imported.run(code, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    modules = ast.literal_eval(run.stdout.splitlines()[-1])
    assert 20 < len(modules) <= most, modules
