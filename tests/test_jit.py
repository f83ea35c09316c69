"""Compiled functions: where they are cached, and that they work without a cache."""

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

MODULE = """
from ptrnet.jit import jit

@jit
def square(x):
    return x * x

print(square(12.0))
"""
NO_FOLDER = "from numba.core import caching as c; c.CacheImpl._locator_classes[:] = []\n"


def run(script, cache):
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_compiled_code_is_kept_in_the_given_folder(tmp_path):
    (tmp_path / "square.py").write_text(MODULE)
    for _ in range(2):
        assert run(tmp_path / "square.py", tmp_path / "cache") == ("144.0\n", "")
        assert len(list((tmp_path / "cache").rglob("square*.nbc"))) == 1


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    """numba then uses another folder, and compiles in every process if it finds none."""
    (tmp_path / "file").write_text("")
    for name, module in (("square.py", MODULE), ("nowhere.py", NO_FOLDER + MODULE)):
        (tmp_path / name).write_text(module)
        assert run(tmp_path / name, tmp_path / "file") == ("144.0\n", "")


def test_compiled_functions_copy_rows_by_assign():
    """For an assignment to a slice, numba compiles a shape error message: two seconds more."""
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
