"""Plug-ins: a task, a model, a labeller and a format that are not of this package."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
PARETO = ROOT / "examples" / "plugins" / "pareto.py"
SMALL = ["--n", "4-6", "--steps", "3", "--hidden-size", "8", "--batch-size", "8"]


def run(folder, *words, **environment):
    """Processes of their own: what is registered stays for the life of one."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )


# The program with each file of plug-ins, from the same imported modules.
FORKING = """
import os, sys
import ptrnet.data.formats, ptrnet.models.ptr_net
from ptrnet.cli import run
for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        code = run(["train", "sort", "--plugins", path])
        sys.stderr.flush()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
"""


def ptrnet(folder, *words):
    return run(folder, "-m", "ptrnet", *words)


def test_a_file_from_training_to_answers(tmp_path):
    train = ["train", "pareto", "--plugins", str(PARETO), "--model", "pooled-ptr-net"]
    commands = [
        [*train, "--pool", "max", *SMALL, "--output", "model"],
        ["generate", "pareto", "--n", "5", "--count", "20", "--output", "a.pts"],
        ["solve", "pareto", "a.pts", "--model", "model"],
    ]
    code = f"from ptrnet.cli import run\nfor words in {commands}: assert run(words) == 0"
    done = run(tmp_path, "-c", code)
    assert done.returncode == 0 and done.stdout.startswith("model\n"), done.stderr
    assert done.stdout.count(">") == 20
    assert 'pool = "max"' in (tmp_path / "model" / "recipe.toml").read_text()
    for line in (tmp_path / "a.pts").read_text().splitlines():
        points, answer = line.split(">")
        x = np.array([[float(v) for v in p.split(",")] for p in points.split(";")])
        is_beaten = [any((y <= p).all() and (y != p).any() for y in x) for p in x]
        assert sorted(map(int, answer.split())) == np.flatnonzero(~np.array(is_beaten)).tolist()
    without = ptrnet(tmp_path, "solve", "a.txt", "--model", "model")
    assert without.returncode == 2 and "unknown" in without.stderr


def test_the_contracts_hold_over_plugins():
    chosen = "(pareto and (number_of_workers or dies)) or (pooled and step_by_step)"
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract", "-k", chosen]
    done = run(ROOT, *words, PTRNET_PLUGINS=str(PARETO))
    assert done.returncode == 0 and "[100%]" in done.stdout, done.stdout[-3000:]


def test_an_installed_package_is_found_by_its_entry_point(tmp_path):
    (tmp_path / "mine.py").write_text(PARETO.read_text())
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ptrnet.plugins]\nmine = mine\n")
    code = "import ptrnet; from ptrnet import tasks, models; print(tasks.names(), models.names())"
    done = run(tmp_path, "-c", code, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT / 'src'}")
    assert "'pareto'" in done.stdout and "'pooled-ptr-net'" in done.stdout, done.stderr


def test_what_fails_is_one_line(tmp_path):
    failures = [
        ("x = 1 / 0", "plug-in {path}: ZeroDivisionError: division by zero"),
        ("def f(:", "plug-in {path}: SyntaxError"),
        ("import ptrnet.models as m; m.register('ptr-net', 3)", "derived from PointerModel, got 3"),
        (
            "import ptrnet.models as m\nfrom ptrnet.models.ptr_net import PtrNet\n"
            "m.register('seq2seq', PtrNet)",
            "model 'seq2seq' is there already; choose another name",
        ),
        ("import ptrnet.tasks as t; t.register(int)", "derived from Task, got <class 'int'>"),
        ("import ptrnet.labellers as x; x.register('a', 1)", "a module with `label`, got 1"),
        ("import ptrnet.data.formats as f; f.register('a', 1)", "1 has no CAPABILITIES"),
        (
            "import types, ptrnet.data.formats as f; "
            "f.register('a', types.SimpleNamespace(CAPABILITIES=1, read=1, write=1))",
            "CAPABILITIES: expected Capabilities, got 1",
        ),
        (None, "{path}: expected a Python file of plug-ins"),
    ]
    paths = [tmp_path / f"bad_{k}.py" for k in range(len(failures))]
    for path, (text, _) in zip(paths, failures, strict=True):
        if text is not None:
            path.write_text(text)
    done = run(tmp_path, "-c", FORKING, *map(str, paths))
    assert done.returncode == 0 and done.stdout == "", done.stderr
    lines = done.stderr.splitlines()
    for line, path, (_, message) in zip(lines, paths, failures, strict=True):
        assert message.format(path=path) in line


TOP = """
import numpy as np
from ptrnet import labellers, tasks
from ptrnet.tasks.base import Task
from ptrnet.types import Answers

class lab:
    @staticmethod
    def label(inputs):
        return Answers({indices}, np.full(len(inputs), {length}))

@tasks.register
class Top(Task):
    name, labellers, num_features = "top", ("toplab",), 1
    def max_length(self, n): return n
    def build_constraint(self): ...
    def answer_error(self, n, outputs, first=0):
        return "each once" if len(set(outputs.tolist())) < len(outputs) else None
    def score(self, examples, answers): ...
    def draw(self, inputs, outputs): ...

labellers.register("toplab", lab)
"""


def test_labels_of_a_plug_in_are_checked(tmp_path):
    """What is no answer was learned from, and written; -1 became the end of the answer."""
    cases = [
        ("np.full((len(inputs), 3), 1)", 1, None),
        ("np.full((len(inputs), 3), -1)", 2, "expected 0 to 3, got -1"),
        ("np.full((len(inputs), 3), 4)", 2, "expected 0 to 3, got 4"),
        ("np.full((len(inputs), 3), 1)", 2, "each once"),
        ("np.full((len(inputs), 3), 1.0)", 1, "expected whole numbers (2, M)"),
        ("np.full((len(inputs), 3), 1)", 7, "expected at most 3 indices, got 7"),
        ("np.full((len(inputs), 9), 1)", 9, "expected at most 4 indices, got 9"),
        ("np.full((1, 3), 1)", 1, "expected whole numbers (2, M)"),
    ]
    for k, (indices, length, _) in enumerate(cases):
        (tmp_path / f"top_{k}.py").write_text(TOP.format(indices=indices, length=length))
    code = """
import os, sys
import ptrnet.data.bulk.generate
from ptrnet.cli import run
for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        words = "--n 4 --count 2 --jobs 1 --output".split()
        code = run(["generate", "top", "--plugins", path, *words, path + ".jsonl"])
        print(code, flush=True)
        sys.stderr.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""
    done = run(tmp_path, "-c", code, *(f"top_{k}.py" for k in range(len(cases))))
    codes, lines = done.stdout.split(), [e for e in done.stderr.splitlines() if "ptrnet:" in e]
    assert codes == ["0", *["2"] * 7], done.stderr
    for line, (_, _, complaint) in zip(lines, cases[1:], strict=True):
        assert "labeller toplab" in line and complaint in line, line
    assert not (tmp_path / "top_1.py.jsonl").exists()


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


def test_registering_again_and_wrongly(tmp_path):
    done = run(tmp_path, "-c", REGISTERING)
    plain, unready, other = done.stdout.splitlines() or [done.stderr] * 3
    assert "field depth: expected one that ptrnet.tasks.base.setting" in plain
    assert "Unready: expected it to have labellers, answer_error, build_constraint" in unready
    assert "'mine' is there already" in other


def test_a_setting_of_a_recipes_name_is_refused(tmp_path):
    (tmp_path / "seeds.py").write_text(
        "from ptrnet import tasks\nfrom ptrnet.tasks.hull import Hull\n"
        "from ptrnet.tasks.base import setting\nfrom dataclasses import dataclass\n"
        "@tasks.register\n@dataclass(frozen=True)\nclass Seeds(Hull):\n"
        "    name = 'seeds'\n    seed: int = setting(3, 'of mine')\n"
    )
    done = ptrnet(tmp_path, "train", "seeds", "--plugins", "seeds.py", "--output", "m")
    assert done.returncode == 2 and "setting seed: a recipe has a field of that name" in done.stderr


def test_what_fails_is_said_again(tmp_path):
    (tmp_path / "bad.py").write_text("x = 1 / 0")
    code = (
        "from ptrnet import tasks, InputError\n"
        "for _ in range(2):\n"
        "    try: tasks.names()\n"
        "    except InputError as error: print(error)"
    )
    done = run(tmp_path, "-c", code, PTRNET_PLUGINS=str(tmp_path / "bad.py"))
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


def test_other_threads_wait_for_what_is_being_loaded(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import time, ptrnet.models as m\nfrom ptrnet.models.ptr_net import PtrNet\n"
        "time.sleep(1)\nm.register('mine', type('Mine', (PtrNet,), {}))"
    )
    done = run(tmp_path, "-c", LOADING, PTRNET_PLUGINS=str(mine))
    assert done.stdout == "[True, True]\n", done.stderr
    missing = run(tmp_path, "-c", LOADING, PTRNET_PLUGINS=str(tmp_path / "none.py"))
    assert missing.stdout.count("none.py: expected a Python file of plug-ins") == 2


def test_an_option_without_a_file(tmp_path):
    done = ptrnet(tmp_path, "models", "--plugins")
    assert (done.returncode, done.stderr) == (2, "ptrnet: --plugins: expected a Python file\n")


def test_two_files_of_one_name_are_told_apart(tmp_path):
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
    done = run(tmp_path, "-c", code, PTRNET_PLUGINS=files)
    assert "is a file of plug-ins of the same name" in done.stderr
