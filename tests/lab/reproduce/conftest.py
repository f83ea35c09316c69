"""Tables for tests: one tiny row of hulls, and one of tours."""

import pytest

from ptrnet_lab.reproduce import tables, testsets

TABLE = """\
title = "Tiny"
metrics = ["{metric}"]
notes = "None."

[rows.first]
method = "Ptr-Net"
trained_on = "5"
task = "{task}"
test_n = 5
labellers = {labellers}
published = {{ {metric} = 2.12, a1 = 2.18 }}
[rows.first.ours]
task = "{task}"
n = "5"
steps = 30
hidden_size = 8
batch_size = 16
valid_batches = 1
checkpoint_every = 10
decoder = "beam"
beam_size = 2
constrained = true
[rows.first.best]
weights = "{task}"
constrained = true

[rows.second]
method = "Ptr-Net"
trained_on = "5"
task = "{task}"
test_n = 7
published = {{}}
[rows.second.ours]
task = "{task}"
n = "5"
steps = 30
hidden_size = 8
batch_size = 16
valid_batches = 1
checkpoint_every = 10
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Replace the tables by `tiny/hulls` and `tiny/tours`, with tests of 20 instances."""
    folder = tmp_path / "recipes" / "tiny"
    (folder / "figures").mkdir(parents=True)
    for name, task, metric, labellers in (
        ("hulls", "hull", "accuracy", "[]"),
        ("tours", "tsp", "length", '["exact", "a1"]'),
    ):
        text = TABLE.format(task=task, metric=metric, labellers=labellers)
        (folder / f"{name}.toml").write_text(text)
    for kind in ("answers", "curves"):
        (folder / "figures" / f"{kind}.toml").write_text(
            f'title = "T"\nkind = "{kind}"\nrows = ["tiny/hulls/first", "tiny/hulls/second"]\n'
        )
    monkeypatch.setattr(tables, "RECIPES", tmp_path / "recipes")
    monkeypatch.setattr("ptrnet_lab.reproduce.figures.RECIPES", tmp_path / "recipes")
    monkeypatch.setattr(testsets, "COUNT", 200)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path
