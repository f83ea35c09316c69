"""Ids of models on the Hugging Face hub."""

from ptrnet import hub


def test_revisions_may_have_slashes():
    assert hub.is_id("owner/name@refs/pr/1") and not hub.is_id("owner/name/more")
