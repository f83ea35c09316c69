"""The limits of the service. Each is an option of `ptrnet serve`."""

import math
from dataclasses import dataclass, fields

from ptrnet.errors import InputError


@dataclass(frozen=True)
class Limits:
    """The limits of one process of the service, each above 0."""

    queue: int = 64  # requests that are being answered or wait
    max_body: int = 8_388_608  # bytes of a request's body
    max_n: int = 2_000  # elements of an instance
    max_elements: int = 100_000  # of all instances of a request
    # Elements (at least 8 an instance) times prefixes and views. A million take about 2 GB.
    max_prefix_elements: int = 250_000
    max_trace: int = 200_000  # probabilities of a trace: steps times prefixes times tokens
    body_seconds: float = 10.0  # until the body is complete
    answer_seconds: float = 30.0  # from then on, until the answer

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < math.inf:
                flag = "--" + field.name.replace("_", "-")
                raise InputError(f"{flag}: expected a number above 0, got {value}")
