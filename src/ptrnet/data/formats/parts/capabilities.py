"""What files of a format can hold, so that what they cannot is refused before it is lost."""

from dataclasses import dataclass

from ptrnet.geometry.distances import EUCLIDEAN


@dataclass(frozen=True)
class Capabilities:
    """What files of a format can hold, and what writing them takes.

    Every module of `ptrnet.data.formats` has an object of this class as `CAPABILITIES`.
    """

    multiple: bool = True  # whether a file can hold more than one example
    answers: bool = True  # whether an answer is read again as an answer
    extra: bool = False  # whether what else is known of an example is read again
    distances: tuple[str, ...] = (EUCLIDEAN,)  # those that an example may have
    task: str | None = None  # the only task that the format serves; None: all tasks
    binary: bool = False  # whether `write` takes a stream of bytes, not of text
    stdout_format: str = ""  # the format of answers on standard output; empty: the same
    package: str = ""  # an optional package that it needs; the extra has the format's name
