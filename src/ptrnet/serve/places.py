"""The bounded queue: a request has a place until it is answered, or is refused at once.

It takes its place when its body is there: a slow one keeps no other out.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ptrnet.serve.problems import too_busy


class Places:
    """So many requests are answered or wait for it.

    Args:
        count: of the places.
    """

    def __init__(self, count: int) -> None:
        self.count, self.taken = count, 0

    def refuse_if_full(self) -> None:
        """Raises Problem 429 where no place is left."""
        if self.taken >= self.count:
            raise too_busy(f"all {self.count} places of the queue are taken; try again")

    @contextmanager
    def take(self) -> Iterator[None]:
        """A place, inside. Raises Problem 429 where none is left."""
        self.refuse_if_full()
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
