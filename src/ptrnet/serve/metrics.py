"""What Prometheus is told: requests, instances, batches and the queue."""

import os

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

SHARED = "PROMETHEUS_MULTIPROC_DIR"  # the folder in which several processes add up their numbers
MEDIA_TYPE = CONTENT_TYPE_LATEST
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """The numbers of one service; of all its processes where they share a folder."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self._requests = Counter(
            "ptrnet_requests",
            "Requests, by route and status.",
            ["route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "ptrnet_request_seconds",
            "From a request's headers to the end of its response.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._instances = Counter(
            "ptrnet_instances", "Instances that were answered.", ["model"], registry=registry
        )
        self._batch_instances = Histogram(
            "ptrnet_batch_instances", "Instances of a batch.", buckets=_SIZES, registry=registry
        )
        self._batch_seconds = Histogram(
            "ptrnet_batch_seconds",
            "How long a batch is decoded.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.in_queue = Gauge(
            "ptrnet_queue",
            "Requests that are answered or wait for it.",
            registry=registry,
            multiprocess_mode="livesum",
        )

    def request(self, route: str, status: int, seconds: float) -> None:
        """Counts a request."""
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def answered(self, model: str, count: int) -> None:
        """Counts the instances of a request that was answered."""
        self._instances.labels(model).inc(count)

    def batch(self, count: int, seconds: float) -> None:
        """Counts a batch of `count` instances."""
        self._batch_instances.observe(count)
        self._batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """All numbers in Prometheus's format."""
        registry = self._registry
        if SHARED in os.environ:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
