"""Fixtures that make measurements fast."""

import pickle

import pytest

from ptrnet_lab.bench import data, harness, label, roofline, score


@pytest.fixture
def quick(monkeypatch):
    """Use small products, files and runs. Pickle setups, but do not run them in other processes."""

    def pickled_sizes(setups, title):
        return [float(len(pickle.dumps(setup))) for setup in setups]

    monkeypatch.setattr(harness, "peaks", pickled_sizes)
    monkeypatch.setitem(roofline._SIDE, "cpu", 32)
    monkeypatch.setattr(score, "_TIMES", 20)
    monkeypatch.setattr(data, "COUNT", 40)
    monkeypatch.setattr(data, "STEPS", 2)
    monkeypatch.setattr(label, "MIN_SECONDS", 1e-4)
    monkeypatch.setattr(label, "cpu_count", lambda: 1)
