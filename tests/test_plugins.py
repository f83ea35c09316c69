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
