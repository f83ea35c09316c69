"""How many instances a batch may have so that none takes long: learned from the batches before."""

from collections.abc import Hashable

SECONDS = 0.5  # that a batch should take; who comes meanwhile waits for it


class Pace:
    """The room of batches, for each kind of them: it doubles while full ones are in time.

    Memory bounds how large a batch can be; this bounds how long it takes, which for instances of
    equally many elements differs a hundredfold between models and decoders.

    Args:
        first: the room while nothing is known of a kind.
    """

    def __init__(self, first: int) -> None:
        self._first, self._rooms = first, dict[Hashable, int]()

    def room(self, kind: Hashable) -> int:
        """How many instances of a kind may share a batch, 1 or more."""
        return self._rooms.get(kind, self._first)

    def note(self, kind: Hashable, count: int, seconds: float) -> None:
        """Learns from a batch: how many instances it had, and how long it took or ran in vain."""
        if seconds > SECONDS:
            self._rooms[kind] = max(1, int(count * SECONDS / seconds))
        elif count >= self.room(kind):
            self._rooms[kind] = 2 * count
