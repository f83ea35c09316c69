"""How much the service takes on: each limit is an option of `ptrnet serve`."""

import math
from dataclasses import dataclass, fields

from ptrnet.errors import InputError


@dataclass(frozen=True)
class Limits:
    """The limits of one process of the service; all above 0."""

    queue: int = 64  # requests that are answered or wait for it
    max_body: int = 8_388_608  # bytes of a request's body
    max_n: int = 2_000  # elements of an instance
    max_elements: int = 100_000  # of a request, over its instances
    # The same, an instance as of 8 or more, times prefixes and views: some 2 GB for a million.
    max_prefix_elements: int = 250_000
    max_trace: int = 200_000  # probabilities of a trace: steps times prefixes times tokens
    body_seconds: float = 10.0  # for a body to arrive
    answer_seconds: float = 30.0  # from then on, for the answer

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < math.inf:
                flag = "--" + field.name.replace("_", "-")
                raise InputError(f"{flag}: expected a number above 0, got {value}")
