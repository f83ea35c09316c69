"""How a process of the service ends."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sigterm_exits() -> Iterator[None]:
    """Inside, SIGTERM ends the program with exit code 0.

    The server takes the signal for itself while it serves. When it has finished, it puts this
    handler back and raises the signal once more.
    """
    former = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
