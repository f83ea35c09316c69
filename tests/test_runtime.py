"""What the program sets for its process."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import ptrnet
from ptrnet import runtime

CODE = """
from ptrnet import runtime

runtime.tune()

import numpy as np

from ptrnet.jit import assign

assign(np.zeros(2), np.ones(2))
"""


def compiled(**settings):
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | settings
    subprocess.run([sys.executable, "-c", CODE], env=environment, check=True)


def test_compiled_kernels_are_kept_in_the_users_cache_by_version(tmp_path):
    compiled(XDG_CACHE_HOME=str(tmp_path))
    folder = tmp_path / "ptrnet" / f"compiled-{ptrnet.__version__}"
    assert any("assign" in path.name for path in folder.rglob("*.nbi"))


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "ptrnet").write_text("a file in the place of the folder")
    compiled(XDG_CACHE_HOME=str(tmp_path))


def test_a_user_without_a_home_is_no_error(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    runtime.tune()


def test_the_version_is_the_projects():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["version"] == ptrnet.__version__
