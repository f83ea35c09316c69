"""The process-wide settings of `ptrnet.runtime`."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

import ptrnet
from ptrnet import runtime

CODE = """
from ptrnet import runtime

runtime.tune()

import numpy as np

from ptrnet.jit import assign

assign(np.zeros(2), np.ones(2))
"""


# Each fork prints its memory. oneDNN reads the capacity at its first product.
PRODUCTS = """
import os
from pathlib import Path

from ptrnet import runtime

runtime.tune()

import torch

torch.set_num_threads(1)
for capacity in ("1024", os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]):
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] = capacity
    for n in range(20, 220):
        rows = torch.rand(4, n, 16).bfloat16()
        rows @ rows.transpose(1, 2) @ rows
    lines = Path("/proc/self/status").read_text().splitlines()
    print(next(line.split()[1] for line in lines if line.startswith("RssAnon")))
    break
"""


def compiled(**settings):
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | settings
    subprocess.run([sys.executable, "-c", CODE], env=environment, check=True)


def test_compiled_kernels_are_cached_by_version(tmp_path):
    compiled(XDG_CACHE_HOME=str(tmp_path))
    folder = tmp_path / "ptrnet" / f"compiled-{ptrnet.__version__}"
    assert any("assign" in path.name for path in folder.rglob("*.nbi"))


def test_unwritable_cache_is_not_an_error(tmp_path):
    (tmp_path / "ptrnet").write_text("a file in the place of the folder")
    compiled(XDG_CACHE_HOME=str(tmp_path))


def test_missing_home_directory_is_not_an_error(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    runtime.tune()


@pytest.mark.skipif(
    not (sys.platform == "linux" and torch.cpu._is_avx512_bf16_supported()),
    reason="needs Linux and a processor for which oneDNN compiles products of bfloat16",
)
def test_smaller_primitive_cache_saves_memory():
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ONEDNN")}
    command = [sys.executable, "-c", PRODUCTS]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    larger, tuned = (int(kilobytes) / 1024 for kilobytes in done.stdout.split())
    assert larger > tuned + 15


def test_version_equals_that_of_pyproject():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["version"] == ptrnet.__version__
