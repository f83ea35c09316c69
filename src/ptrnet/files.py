"""Writing files so that a reader finds the whole new file or none of it."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ptrnet.errors import InputError


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`; renamed to it on success, removed on any failure.

    Raises:
        InputError: the folder is missing, not writable, or the disk is full.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected a file")
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
