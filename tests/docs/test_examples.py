"""The scripts in examples/ run."""

import runpy
import sys

import pytest

from tests.docs.blocks import ROOT


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_each_example_runs(script, tmp_path, monkeypatch, capsys):
    """Scripts that train read the number of steps and of examples from their arguments."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), "5", "100"])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
