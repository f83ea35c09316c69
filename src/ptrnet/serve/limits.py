"""Limits of the service. Each field is an option of `ptrnet serve`."""

from dataclasses import dataclass

from ptrnet.settings import Settings, setting


@dataclass(frozen=True)
class Limits(Settings):
    """Limits of one process of the service. With workers, each worker has its own queue."""

    queue: int = setting(64, "Requests that are answered or wait; more get 429.", gt=0)
    max_body: int = setting(8_388_608, "Bytes of a request.", gt=0)
    max_n: int = setting(2_000, "Elements of an instance.", gt=0)
    max_elements: int = setting(100_000, "Of a request, over its instances.", gt=0)
    # A million of these elements take about 2 GB.
    max_prefix_elements: int = setting(
        250_000,
        "The same, of an instance at least 8, times beam size or samples, times views.",
        gt=0,
    )
    max_trace: int = setting(200_000, "Probabilities of a trace: steps, prefixes, tokens.", gt=0)
    body_seconds: float = setting(10.0, "For a request to arrive.", gt=0)
    answer_seconds: float = setting(30.0, "From then on, for its answer.", gt=0)
