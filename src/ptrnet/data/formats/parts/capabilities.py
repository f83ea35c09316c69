"""What files of a format can hold, so that what they cannot is refused before it is lost."""

from dataclasses import dataclass

from ptrnet.geometry.distances import EUCLIDEAN


@dataclass(frozen=True)
class Capabilities:
    """Every module of `ptrnet.data.formats` has them as `CAPABILITIES`."""

    multiple: bool = True  # whether a file can hold more than one example
    answers: bool = True  # whether an answer can be read again as one
    distances: tuple[str, ...] = (EUCLIDEAN,)
    task: str | None = None  # the only one that it serves; None for all
    binary: bool = False  # whether `write` takes a stream of bytes, not of text
    stdout_format: str = ""  # of answers on standard output; empty for the format itself
    package: str = ""  # needed beyond the required ones; the extra has the format's name
