"""What files of a format can hold, so that what they cannot is refused before it is lost."""

from dataclasses import dataclass

from ptrnet.geometry.distances import EUCLIDEAN


@dataclass(frozen=True)
class Capabilities:
    """What files of a format can hold, and what writing them takes.

    Every module of `ptrnet.data.formats` has an object of this class as `CAPABILITIES`.

    Args:
        multiple: whether a file can hold more than one example.
        answers: whether an answer is read again as an answer.
        extra: whether what else is known of an example is read again.
        distances: those that an example may have.
        dictionaries: whether elements may have fields with names.
        task: the only task that the format serves; None for all tasks.
        binary: whether `write` takes a stream of bytes, not of text.
        stdout_format: the format of answers on standard output; empty for the same.
        package: an optional package that it needs; the extra has the format's name.
    """

    multiple: bool = True
    answers: bool = True
    extra: bool = False
    distances: tuple[str, ...] = (EUCLIDEAN,)
    dictionaries: bool = False
    task: str | None = None
    binary: bool = False
    stdout_format: str = ""
    package: str = ""
