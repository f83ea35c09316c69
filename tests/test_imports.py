"""What an import costs, and what it makes available."""

import subprocess
import sys


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
