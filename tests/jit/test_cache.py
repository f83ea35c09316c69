"""A cache of compiled code that is damaged, empty, full or not to be written: no work fails."""

import ast
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import pytest
from numba.core.compiler_lock import global_compiler_lock

from ptrnet.jit import _is_whole
from tests.support.fork_server import ForkServer
from tests.support.terminal import run_at_terminal

ROOT = Path(__file__).parents[2]

MODULE = """
from ptrnet.jit import jit

@jit
def square(x):
    return x * x

print(square(12.0))
"""


def run(folder, **options):
    """What a compiled function prints in a process of its own, and what is said beside it."""
    done = subprocess.run(
        [sys.executable, folder.parent / "square.py"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def forked():
    """As `run`, in a process in which numba is imported already."""
    server = ForkServer("import ptrnet.jit")
    code = (
        "import runpy; from numba.core import config; config.reload_config();"
        "runpy.run_path('square.py', run_name='__main__')"
    )

    def run(folder):
        done = server.run(code, cwd=folder.parent, NUMBA_CACHE_DIR=str(folder))
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    yield run
    server.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory, forked):
    """A folder of a module and its cache, which was filled."""
    folder = tmp_path_factory.mktemp("module")
    (folder / "square.py").write_text(MODULE)
    assert forked(folder / "cache") == ("144.0\n", "")
    assert list(folder.rglob("*.kept*.nbi")) and list(folder.rglob("*.nbc"))
    return folder


@pytest.fixture
def warm(filled):
    """The cache, as it was."""
    kept = {path: path.read_bytes() for path in filled.rglob("*.nb?")}
    yield filled / "cache"
    shutil.rmtree(filled / "cache")
    for path, content in kept.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def cut(content):
    return content[: len(content) // 2]


def flip(content):
    changed = bytearray(content)
    changed[len(content) // 3] ^= 8
    return bytes(changed)


def emptied(content):
    return b""


@pytest.mark.parametrize("damage", [cut, flip, emptied])
def test_damage_is_seen(filled, tmp_path, damage, capsys):
    for path in filled.rglob("*.nb?"):
        assert _is_whole(str(path))
        damaged = tmp_path / path.name
        damaged.write_bytes(damage(path.read_bytes()))
        assert not _is_whole(str(damaged))


@pytest.mark.parametrize(("extension", "damage"), [("nbi", cut), ("nbc", flip)])
def test_a_damaged_file_is_compiled_anew(warm, forked, damage, extension):
    (path,) = warm.rglob(f"*.{extension}")
    path.write_bytes(damage(path.read_bytes()))
    assert forked(warm) == ("144.0\n", f"{path}: damaged; compiled anew\n")
    assert forked(warm) == ("144.0\n", "")


def test_a_file_that_is_a_folder_is_passed_by(warm, forked):
    (path,) = warm.rglob("*.nbi")
    path.unlink()
    path.mkdir()
    out, err = forked(warm)
    assert out == "144.0\n"
    assert err.splitlines()[0].endswith("compiled anew, as it cannot be read: Is a directory")
    assert err.splitlines()[1].endswith("compiled code is not kept: Is a directory")


def test_a_full_disk_is_one_line(filled):
    def limit_file_size():
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    out, err = run(filled / "full", preexec_fn=limit_file_size)
    assert out == "144.0\n"
    assert err.count("\n") == 1 and err.endswith("compiled code is not kept: File too large\n")


FULL = """
from pathlib import Path
from ptrnet.jit import _CheckedFiles

def refuse(*arguments):
    raise OSError("No space left")

if Path(__file__).with_name("full").exists():
    _CheckedFiles._save_data = refuse

print("""


def test_an_index_never_names_the_code_of_an_older_source(tmp_path, forked):
    """On a full disk it named what had been compiled before, which was run from then on."""
    source, full = tmp_path / "square.py", tmp_path / "full"
    module = MODULE.replace("print(", FULL)
    source.write_text(module)
    assert forked(tmp_path / "cache") == ("144.0\n", "")
    source.write_text(module.replace("x * x", "x * x + 1"))
    full.touch()
    assert forked(tmp_path / "cache")[0] == "145.0\n"
    full.unlink()
    for _ in range(2):
        assert forked(tmp_path / "cache") == ("145.0\n", "")


def test_no_folder_at_all_is_no_error(filled, forked):
    """numba then takes another one, beside the source; or none, where that cannot be written."""
    (filled / "file").write_text("")
    assert forked(filled / "file") == ("144.0\n", "")
    code = "from numba.core import caching as c; c.CacheImpl._locator_classes[:] = []\n"
    (filled / "none.py").write_text(code + MODULE)
    done = subprocess.run([sys.executable, filled / "none.py"], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("144.0\n", "")


def test_what_was_kept_is_loaded_without_the_compiler(tmp_path):
    """Code that takes memory and raises needs none of it; what was not kept is still compiled."""
    (tmp_path / "square.py").write_text(MANAGED)
    for is_compiled in (True, False):
        out, err = run(tmp_path / "cache")
        assert (out, err) == (f"[0. 1. 2.] expected more\ncompiler {is_compiled}\n144.0\n", "")


def test_of_processes_that_begin_together_one_compiles(tmp_path):
    """Three workers compiled the same code three times, on two cores."""
    (tmp_path / "square.py").write_text(MANAGED)
    with ThreadPoolExecutor(3) as threads:
        printed = list(threads.map(run, [tmp_path / "cache"] * 3))
    compilers = sorted(out.split("compiler ")[1].split()[0] for out, _ in printed)
    assert compilers == ["False", "False", "True"] and {err for _, err in printed} == {""}


THREADS = """
import fcntl
import time
from concurrent.futures import ThreadPoolExecutor
import ptrnet.jit

flock = fcntl.flock

def slow(file, operation):
    flock(file, operation)
    if operation == fcntl.LOCK_UN:
        time.sleep(0.1)

ptrnet.jit.fcntl.flock = slow

@ptrnet.jit.jit
def square(x):
    return x * x

with ThreadPoolExecutor(3) as threads:
    print(*threads.map(square, [12.0, 12.0, 12]))
"""


def test_of_threads_that_begin_together_each_releases_its_own(tmp_path, forked):
    """A first training ended so: one thread closed the lock's file while the other released it."""
    (tmp_path / "square.py").write_text(THREADS)
    assert forked(tmp_path / "cache") == ("144.0 144.0 144\n", "")


def test_a_process_that_is_forked_while_a_thread_compiles_can_compile():
    """It waited for ever for a lock that no thread of its own had."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(global_compiler_lock.acquire).result()
        thread.submit(time.sleep, 0.3)
        thread.submit(global_compiler_lock.release)
        child = os.fork()
        if not child:
            signal.alarm(60)
            try:
                os._exit(int(numba.njit(lambda x: x * x)(12)))
            finally:
                os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 144


def test_who_waits_at_a_terminal_is_told(filled):
    """The first picture of a tour took 25 seconds of silence, as its optimum is computed."""
    message = "ptrnet: compiles for this processor, which takes some seconds once\r\n"
    for expected in (message, ""):
        said = run_at_terminal(
            [sys.executable, filled / "square.py"], {"NUMBA_CACHE_DIR": str(filled / "terminal")}
        )
        assert said == (0, "144.0\n", expected)


MANAGED = """
import sys
import numba
import numpy as np
from ptrnet.jit import jit

@jit
def count(n):
    if n < 1:
        raise ValueError("expected more")
    numbers = np.empty(n)
    for k in range(n):
        numbers[k] = k
    return numbers

try:
    count(0)
except ValueError as error:
    print(count(3), error)
print("compiler", "numba.np.linalg" in sys.modules)
print(numba.njit(lambda x: x * x)(12.0))
"""


def test_compiled_functions_copy_rows_by_assign():
    """With a slice on the left numba compiles a complaint about shapes: two seconds more."""
    count = 0
    for path in (ROOT / "src").rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            names = [ast.unparse(d) for d in getattr(function, "decorator_list", [])]
            if not any("jit" in name for name in names):
                continue
            count += 1
            for node in ast.walk(function):
                slices = [
                    target
                    for target in getattr(node, "targets", [])
                    if isinstance(target, ast.Subscript)
                    and any(isinstance(part, ast.Slice) for part in ast.walk(target.slice))
                ]
                assert not slices or isinstance(node.value, ast.Constant), ast.unparse(node)
    assert count > 50
