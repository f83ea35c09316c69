"""The cache of compiled code, as a kind of files."""

import importlib.util
from pathlib import Path
from unittest import mock

import numba

from ptrnet import jit
from tests.stress.kinds import Kind

MODULE = "def square(x):\n    return x * x\n"


def _call(folder: Path) -> float:
    """What a compiled function gives, whose cache is in the folder."""
    # Beside the folder, always at one place: numba's names of files are made of it.
    source = folder.parent / "square.py"
    if not source.exists():
        source.write_text(MODULE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("square", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    jit._said.clear()
    with mock.patch.object(numba.config, "CACHE_DIR", str(folder / "cache")):
        return float(jit.jit(module.square)(12.0))


COMPILED = Kind("compiled", _call, ("cache/*/*",), _call)
