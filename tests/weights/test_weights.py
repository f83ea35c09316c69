"""Loading of several models by name."""

import pytest

from ptrnet import weights
from ptrnet.errors import InputError


def test_names_are_the_last_parts_of_paths(small, tmp_path):
    small().save_pretrained(tmp_path / "mine")
    models = weights.load_named(["sort", str(tmp_path / "mine")])
    assert list(models) == ["sort", "mine"]
    assert models["sort"].card.startswith("# sort")
    with pytest.raises(InputError, match="there is a model named mine already"):
        weights.load_named([str(tmp_path / "mine"), str(tmp_path / "mine" / ".")])
