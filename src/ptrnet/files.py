"""Writing files so that a reader finds the whole new file or none of it."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from ptrnet.errors import InputError


def check_writable(path: Path) -> None:
    """Refuses a path that is a folder, or whose folder is not there."""
    if os.path.isdir(path):  # noqa: PTH112  Path.is_dir raises for names that are too long
        raise InputError(f"{path}: is a folder, expected a file")
    if not os.path.isdir(path.parent):  # noqa: PTH112
        raise InputError(f"{path}: cannot be written: there is no folder {path.parent}")


def to_standard_output(lines: Iterable[str]) -> None:
    """Prints whole lines. A reader that has gone is no error.

    Raises:
        InputError: standard output cannot be written, as on a full disk.
    """
    if sys.stdout is None:  # closed by whoever started us
        raise InputError("standard output: cannot be written: it is closed")
    try:
        sys.stdout.writelines(lines)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered would be tried again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise InputError(f"standard output: cannot be written: {error.strerror}") from None


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`; renamed to it on success, removed on any failure.

    Raises:
        InputError: the folder is missing, not writable, or the disk is full.
    """
    check_writable(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    temporary = Path(name)
    try:
        os.close(handle)
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
