"""Plug-ins: a task, a model, a labeller, a format and a problem from outside this package."""

import json
import os
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tests.support.fork_server import PROGRAM

ROOT = Path(__file__).parents[1]
PARETO = ROOT / "examples" / "plugins" / "pareto.py"
TARDINESS = ROOT / "examples" / "plugins" / "tardiness.py"
SMALL = ["--n", "4-6", "--steps", "3", "--hidden-size", "8", "--batch-size", "8"]


@pytest.fixture
def run(fork_server, tmp_path):
    """Return a function that runs Python code in a process."""

    def run_code(code, *arguments, cwd=tmp_path, **environment):
        return fork_server.run(code, *arguments, cwd=cwd, **environment)

    return run_code


@pytest.fixture
def ptrnet(run):
    """Return a function that runs the program in a process."""
    return lambda *words: run(PROGRAM, *words)


def test_a_plugin_file_can_be_trained_and_solved(run, ptrnet, tmp_path):
    train = ["train", "pareto", "--plugins", str(PARETO), "--model", "pooled-ptr-net"]
    commands = [
        [*train, "--pool", "max", *SMALL, "--output", "model"],
        ["generate", "pareto", "--n", "5", "--count", "20", "--output", "a.pts"],
        ["solve", "pareto", "a.pts", "--model", "model"],
    ]
    code = f"from ptrnet.cli import run\nfor words in {commands}: assert run(words) == 0"
    done = run(code)
    assert done.returncode == 0 and done.stdout.startswith("model\n"), done.stderr
    assert done.stdout.count(">") == 20
    assert 'pool = "max"' in (tmp_path / "model" / "recipe.toml").read_text()
    for line in (tmp_path / "a.pts").read_text().splitlines():
        points, answer = line.split(">")
        x = np.array([[float(v) for v in p.split(",")] for p in points.split(";")])
        is_beaten = [any((y <= p).all() and (y != p).any() for y in x) for p in x]
        assert sorted(map(int, answer.split())) == np.flatnonzero(~np.array(is_beaten)).tolist()
    no_model = ptrnet("solve", "pareto", "a.pts", "--plugins", PARETO).stderr
    assert "no model for pareto is shipped; train one with ptrnet train, and name its" in no_model
    assert no_model.endswith("; ptrnet label pareto computes answers by an algorithm\n")
    without = ptrnet("solve", "a.txt", "--model", "model")
    assert without.returncode == 2 and "unknown" in without.stderr


def test_a_problem_file_can_be_checked_trained_and_solved(ptrnet, tmp_path):
    assert "all checks passed" in ptrnet("check", TARDINESS).stdout
    options = ["--batch-size=8", "--samples=4", "--valid-batches=0", "--hidden-size=16"]
    options += ["--encoder-layers=1", "--feed-forward=32"]
    done = ptrnet("train", TARDINESS, "--steps=2", *options)
    assert done.stdout == "runs/tardiness-1\n", done.stderr
    solved = ptrnet("solve", TARDINESS, "--random", 6, "--model", "runs/tardiness-1")
    line = json.loads(solved.stdout)
    assert sorted(line["outputs"]) == list(range(6))
    assert set(line) == {"duration", "due", "weight", "outputs"}
    no_model = ptrnet("solve", TARDINESS, "--random", 6).stderr
    assert no_model.endswith("name its folder with --model\n")  # it has no labeller
    wrong = tmp_path / "wrong.py"
    wrong.write_text("x = 1\n")
    refused = ptrnet("train", wrong)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"ptrnet: {wrong}: expected one class")


def test_the_contracts_hold_over_plugins(run):
    chosen = "(pareto and (number_of_workers or dies)) or (pooled and step_by_step)"
    code = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    words = ["-q", "--assert=plain", "-p", "no:cacheprovider", "tests/contract", "-k", chosen]
    done = run(code, *words, cwd=ROOT, PTRNET_PLUGINS=str(PARETO))
    assert done.returncode == 0 and "[100%]" in done.stdout, done.stdout[-3000:]


def test_an_installed_package_is_found_by_its_entry_point(run, tmp_path):
    (tmp_path / "mine.py").write_text(PARETO.read_text())
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ptrnet.plugins]\nmine = mine\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    done = run(code + "from ptrnet import tasks, models; print(tasks.names(), models.names())")
    assert "'pareto'" in done.stdout and "'pooled-ptr-net'" in done.stdout, done.stderr


def test_a_plugin_that_fails_gives_one_line(ptrnet, tmp_path):
    failures = [
        ("x = 1 / 0", "plug-in {path}: ZeroDivisionError: division by zero"),
        ("def f(:", "plug-in {path}: SyntaxError"),
        ("import ptrnet.models as m; m.register('ptr-net', 3)", "derived from PointerModel, got 3"),
        (
            "import ptrnet.models as m\nfrom ptrnet.models.ptr_net import PtrNet\n"
            "m.register('set-ptr-net', PtrNet)",
            "model 'set-ptr-net' is there already; choose another name",
        ),
        ("import ptrnet.tasks as t; t.register(int)", "derived from Task, got <class 'int'>"),
        *(
            (
                "from ptrnet import tasks\nfrom ptrnet.tasks.sort import Sort\n"
                f"tasks.register(type('Mine', (Sort,), {{'name': {name!r}}}))",
                f"{name!r} is there already; choose another name",
            )
            for name in ("knapsack", "custom")
        ),
        ("import ptrnet.labellers as x; x.register('a', 1)", "a module with `label`, got 1"),
        ("import ptrnet.data.formats as f; f.register('a', 1)", "1 has no CAPABILITIES"),
        (
            "import types, ptrnet.data.formats as f; "
            "f.register('a', types.SimpleNamespace(CAPABILITIES=1, read=1, write=1))",
            "CAPABILITIES: expected Capabilities, got 1",
        ),
        (None, "{path}: expected a Python file of plug-ins"),
    ]
    for k, (text, message) in enumerate(failures):
        path = tmp_path / f"bad_{k}.py"
        if text is not None:
            path.write_text(text)
        done = ptrnet("train", "sort", "--plugins", path)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert message.format(path=path) in done.stderr and done.stderr.count("\n") == 1


TOP = """
import numpy as np
from ptrnet import labellers, tasks
from ptrnet.tasks.base import Facts, Task

class lab:
    @staticmethod
    def label(inputs):
        return {answers}

@tasks.register
class Top(Task):
    name, facts = "top", Facts(num_features=1, machine="free", labellers=("toplab",))
    def max_length(self, n): return n - 1
    def answer_error(self, n, outputs, first=0):
        return "each once" if len(set(outputs.tolist())) < len(outputs) else None
    def score(self, examples, answers): ...
    def draw(self, inputs, outputs): ...

labellers.register("toplab", lab)
"""


def test_labels_of_a_plug_in_are_checked(ptrnet, tmp_path):
    """Once, invalid answers were written and learned; -1 became the end of an answer."""
    cases = [
        ("np.full((len(inputs), 1), 1)", None),
        ("[[1]] * len(inputs)", None),
        ("np.full((len(inputs), 2), -1)", "expected 0 to 3, got -1"),
        ("np.full((len(inputs), 2), 4)", "expected 0 to 3, got 4"),
        ("np.full((len(inputs), 2), 1)", "each once"),
        ("np.full((len(inputs), 1), 1.0)", "expected whole numbers (m), got float64 (1,)"),
        ("np.full((len(inputs), 1, 3), 1)", "expected whole numbers (m), got int64 (1, 3)"),
        ("np.tile(np.arange(4), (len(inputs), 1))", "expected at most 3 tokens, got 4"),
        ("np.full((1, 1), 1)", "expected 2 answers, got 1"),
    ]
    for k, (answers, complaint) in enumerate(cases):
        path = tmp_path / f"top_{k}.py"
        path.write_text(TOP.format(answers=answers))
        words = ["--n", 4, "--count", 2, "--jobs", 1, "--output", f"{path}.jsonl"]
        done = ptrnet("generate", "top", "--plugins", path, *words)
        assert done.returncode == (2 if complaint else 0), done.stderr
        if complaint:
            assert "labeller toplab" in done.stderr and complaint in done.stderr
    assert not (tmp_path / "top_2.py.jsonl").exists()


LISTING = """
from ptrnet import cli, labellers, models
from ptrnet.training import optimizers

labellers.register("longest-first", "parts.longest_first", task="sort")
labellers.register("missing", "parts.missing", task="sort")
labellers.register("idle", "parts.net", task="sort")
models.register("my-net", "parts.net:MyNet")
models.register("no-net", "parts.optimizer:build")
optimizers.register("rprop", "parts.optimizer:build")
cli.register("say-hello", "parts.hello")
cli.register("wave", "parts.hello")
"""
PARTS = {
    "longest_first": """
import numpy as np

def label(inputs):
    return np.argsort(-inputs[:, :, 0], axis=1)
""",
    "net": "from ptrnet.models.ptr_net import PtrNet\nclass MyNet(PtrNet): pass\n",
    "optimizer": """
import torch

def build(recipe, network):
    print("built", recipe.optimiser.learning_rate)
    return torch.optim.Rprop(network.parameters(), recipe.optimiser.learning_rate)
""",
    "hello": "def say_hello():\n    'Say hello.'\n    print('hello')\n",
}


@pytest.fixture
def listed(tmp_path):
    """Install a package with one part of each kind, which it registers by the names of modules."""
    (tmp_path / "parts").mkdir()
    for name, text in PARTS.items():
        (tmp_path / "parts" / f"{name}.py").write_text(text)
    (tmp_path / "listing.py").write_text(LISTING)
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ptrnet.plugins]\nmine = listing\n")
    return (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom ptrnet.cli import run as ptrnet\n"
    )


def test_parts_that_are_registered_by_the_names_of_modules_can_be_used(run, listed, tmp_path):
    done = run(
        listed + "ptrnet(['say-hello'])\n"
        "words = 'train sort --model my-net --optimizer rprop --labeller longest-first'.split()\n"
        f"assert ptrnet([*words, *{SMALL}, '--output', 'm']) == 0\n"
        "words = 'label sort a.txt --output -'.split()\n"
        "open('a.txt', 'w').write('0.2 0.9 0.5\\n')\n"
        "assert ptrnet([*words, '--labeller', 'longest-first']) == 0\n"
    )
    assert done.stdout.splitlines() == ["hello", "built 0.002", "m", "0.2 0.9 0.5 output 2 3 1"]


def test_a_module_of_a_plug_in_is_imported_when_it_is_used(run, listed):
    """Names of ptrnet's own do not even load the plug-ins of installed packages."""
    loaded = "print(sorted(n for n in sys.modules if n.startswith(('listing', 'parts'))))\n"
    done = run(
        f"{listed}import ptrnet as p, numpy as np\nfrom ptrnet import models\n"
        f"p.load('sort').solve(np.ones((3, 1)))\n{loaded}models.names()\n{loaded}"
        f"models.kind('my-net')\n{loaded}"
    )
    assert done.stdout.splitlines() == [
        "[]",
        "['listing']",
        "['listing', 'parts', 'parts.net']",
    ], done.stderr


def test_a_named_module_that_cannot_be_used_gives_one_line(run, listed):
    cases = {
        "label sort a.txt --labeller missing": "plug-in parts.missing: ModuleNotFoundError",
        "label sort a.txt --labeller idle": "register a labeller: expected a module with `label`",
        "label sort a.txt --labeller idel": "did you mean 'idle'? (known: argsort, idle, longest",
        "train sort --model no-net": "register a model: expected a class derived from PointerModel",
        "train sort --optimizer rprob": "unknown optimizer 'rprob'; did you mean 'rprop'?",
        "wave": "register command wave: expected parts.hello to have wave",
    }
    done = run(f"{listed}print([ptrnet(words.split()) for words in {list(cases)}])")
    lines = done.stderr.splitlines()
    assert done.stdout == f"{[2] * len(cases)}\n" and len(lines) == len(cases), done.stderr
    for line, message in zip(lines, cases.values(), strict=True):
        assert message in line


REGISTERING = """
import dataclasses
from ptrnet import InputError, models, tasks
from ptrnet.models.ptr_net import PtrNet
from ptrnet.tasks.hull import Hull

def define():
    @tasks.register
    class Mine(Hull):
        name = "mine"
    models.register("my-net", type("MyNet", (PtrNet,), {}))

define(); define()  # as a notebook's cell that is run twice
assert "mine" in tasks.names()

@dataclasses.dataclass(frozen=True)
class Plain(Hull):
    name = "plain"
    depth: int = 3
class Unready(tasks.Task):
    name = "unready"
class Other(Hull):
    name = "mine"
for cls in (Plain, Unready, Other):
    try:
        tasks.register(cls)
    except InputError as error:
        print(error)
"""


def test_registering_twice_or_wrongly_is_refused(run):
    done = run(REGISTERING)
    plain, unready, other = done.stdout.splitlines() or [done.stderr] * 3
    assert "field depth: declare it with ptrnet.settings.setting" in plain
    assert "Unready: expected it to have answer_error, draw, facts" in unready
    assert "'mine' is there already" in other


def test_a_setting_of_a_recipes_name_is_refused(ptrnet, tmp_path):
    (tmp_path / "seeds.py").write_text(
        "from ptrnet import tasks\nfrom ptrnet.tasks.hull import Hull\n"
        "from ptrnet.settings import setting\nfrom dataclasses import dataclass\n"
        "@tasks.register\n@dataclass(frozen=True)\nclass Seeds(Hull):\n"
        "    name = 'seeds'\n    seed: int = setting(3, 'of mine')\n"
    )
    done = ptrnet("train", "seeds", "--plugins", "seeds.py", "--output", "m")
    assert done.returncode == 2 and "setting seed: a recipe has a field of that name" in done.stderr


def test_a_plugin_that_failed_fails_again_at_the_next_use(run, tmp_path):
    (tmp_path / "bad.py").write_text("x = 1 / 0")
    code = (
        "from ptrnet import tasks, InputError\n"
        "for _ in range(2):\n"
        "    try: tasks.names()\n"
        "    except InputError as error: print(error)"
    )
    done = run(code, PTRNET_PLUGINS=str(tmp_path / "bad.py"))
    assert done.stdout.count("ZeroDivisionError") == 2, done.stderr


LOADING = """
import sys, threading, time
from ptrnet import InputError, models

def ask():
    try: asked.append("mine" in models.names())
    except InputError as error: asked.append(str(error))

asked, threads = [], [threading.Thread(target=ask) for _ in range(2)]
for thread in threads:
    thread.start()
    time.sleep(0.2)
for thread in threads: thread.join()
print(asked)
"""


def test_other_threads_wait_for_what_is_being_loaded(run, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import time, ptrnet.models as m\nfrom ptrnet.models.ptr_net import PtrNet\n"
        "time.sleep(1)\nm.register('mine', type('Mine', (PtrNet,), {}))"
    )
    done = run(LOADING, PTRNET_PLUGINS=str(mine))
    assert done.stdout == "[True, True]\n", done.stderr
    missing = run(LOADING, PTRNET_PLUGINS=str(tmp_path / "none.py"))
    assert missing.stdout.count("none.py: expected a Python file of plug-ins") == 2


def test_plugins_option_without_a_file_is_refused(ptrnet):
    done = ptrnet("models", "--plugins")
    assert (done.returncode, done.stderr) == (2, "ptrnet: --plugins: expected a Python file\n")


def test_two_plugin_files_of_the_same_name_are_distinguished(run, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(
            textwrap.dedent(f"""
            from ptrnet import labellers
            class x: label = staticmethod(lambda inputs: None)
            labellers.register("{name}-labeller", x)
            """)
        )
    files = os.pathsep.join(str(tmp_path / name / "mine.py") for name in ("a", "b"))
    code = "from ptrnet import labellers; print(labellers.names())"
    done = run(code, PTRNET_PLUGINS=files)
    assert "is a plug-in of the same name" in done.stderr
