"""Ids of models on the Hugging Face hub."""

from pathlib import Path

import pytest

from ptrnet import ModelError, hub


def test_revisions_may_have_slashes(monkeypatch):
    def download(name, revision, **_):
        return f"{name}@{revision}"

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert hub.fetch("owner/name@refs/pr/1") == Path("owner/name@refs/pr/1")
    with pytest.raises(ModelError, match=r"^owner/name/more: no such folder$"):
        hub.fetch("owner/name/more")
