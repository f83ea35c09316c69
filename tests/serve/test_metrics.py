"""Metrics of several workers."""

from prometheus_client import CollectorRegistry, Counter, values

from ptrnet.serve.metrics import SHARED, Metrics


def test_metrics_are_shared_while_another_worker_starts(tmp_path, monkeypatch):
    """A worker that starts creates its files empty. Once, all metrics had status 500 then."""
    monkeypatch.setenv(SHARED, str(tmp_path))
    monkeypatch.setattr("prometheus_client.metrics.values.ValueClass", values.MultiProcessValue())
    Counter("answers", "", registry=CollectorRegistry()).inc(3)
    (tmp_path / "counter_99.db").touch()
    (tmp_path / "gauge_livesum_99.db").touch()
    assert "answers_total 3.0" in Metrics().text().decode()
