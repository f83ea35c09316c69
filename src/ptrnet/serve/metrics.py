"""Prometheus metrics of requests, instances, batches and the queue."""

import os
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHARED = "PROMETHEUS_MULTIPROC_DIR"  # environment variable: folder in which workers share metrics
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """Metrics of this process, or of all workers if `SHARED` is set."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "ptrnet_requests",
            "Requests, by route and status.",
            ["route", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "ptrnet_request_seconds",
            "From the headers of a request to the end of its response.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.instances = Counter(
            "ptrnet_instances", "Answered instances.", ["model"], registry=registry
        )
        self.batch_instances = Histogram(
            "ptrnet_batch_instances", "Instances in a batch.", buckets=_SIZES, registry=registry
        )
        self.batch_seconds = Histogram(
            "ptrnet_batch_seconds", "Time to decode a batch.", buckets=_SECONDS, registry=registry
        )
        self.in_queue = Gauge(
            "ptrnet_queue",
            "Requests that wait for their answer.",
            registry=registry,
            multiprocess_mode="livesum",
        )

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        registry = self._registry
        if SHARED in os.environ:
            registry = CollectorRegistry()
            _SharedMetrics(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


class _SharedMetrics(MultiProcessCollector):
    """Collector of the metrics of all workers.

    A worker's file is empty for a moment after its creation. Work around the exception that it
    causes, see https://github.com/prometheus/client_python/issues/1199.
    """

    def collect(self) -> Iterable[Metric]:
        """Return the metrics in all files except empty ones."""
        files = list(Path(os.environ[SHARED]).glob("*.db"))
        paths = [str(file) for file in files if not _is_empty(file)]
        merged: Iterable[Metric] = self.merge(paths)  # type: ignore[no-untyped-call]
        return merged


def _is_empty(file: Path) -> bool:
    """Whether a file is empty, or was removed since its worker ended."""
    try:
        return file.stat().st_size == 0
    except FileNotFoundError:
        return True


class CountingMiddleware:
    """Middleware that records the route, the status and the time of each request in the metrics."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the app, and record it. If the app raises, the status is 500."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = perf_counter(), 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            # Record the route's path, which has {name} instead of a model's name. The web page and
            # all unknown URLs count as "none", so that clients cannot create labels at will.
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.requests.labels(route, status).inc()
            self._metrics.seconds.labels(route).observe(perf_counter() - start)
