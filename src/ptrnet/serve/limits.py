"""Limits of the service. Each field is an option of `ptrnet serve`."""

from dataclasses import dataclass

from ptrnet.settings import Settings, setting


@dataclass(frozen=True)
class Limits(Settings):
    """Limits of one process of the service. With workers, each worker has its own queue."""

    queue: int = setting(64, "Maximum number of accepted requests; others get status 429.", gt=0)
    max_body: int = setting(8_388_608, "Maximum number of bytes of a request.", gt=0)
    max_n: int = setting(2_000, "Maximum number of elements of an instance.", gt=0)
    max_elements: int = setting(
        100_000, "Maximum number of elements of all instances of a request.", gt=0
    )
    # A million elements, multiplied as in the text below, take about 2 GB.
    max_prefix_elements: int = setting(
        250_000,
        "Maximum number of elements of a request, multiplied by its beam size or samples and by "
        "its augment; an instance counts as at least 8 elements.",
        gt=0,
    )
    max_trace: int = setting(
        200_000,
        "Maximum number of probabilities of a trace: steps times prefixes times tokens.",
        gt=0,
    )
    body_seconds: float = setting(
        10.0, "Maximum number of seconds until a request has arrived.", gt=0
    )
    answer_seconds: float = setting(
        30.0, "Maximum number of seconds between a request's arrival and its answer.", gt=0
    )
