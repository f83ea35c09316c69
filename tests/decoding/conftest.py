import pytest

from tests.support.written_graphs import use_written_graphs


@pytest.fixture
def written(monkeypatch):
    """Operations that are written down stand for a GPU's graphs."""
    use_written_graphs(monkeypatch)
