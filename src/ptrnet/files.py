"""Writing files so that a reader finds the whole new file or none of it."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ptrnet.errors import InputError, OutputError

_UMASK = threading.Lock()


class FolderExistsError(InputError):
    """A folder that was to be made is there, and not empty."""


def exists(path: str | Path) -> bool:
    """Whether there is such a file or folder."""
    return os.path.exists(path)  # noqa: PTH110  Path.exists raises for names that are too long


def checksum(path: str | Path) -> str:
    """SHA-256 of a file's content, as hexadecimal digits. Raises OSError."""
    with open(path, "rb") as stream:  # noqa: PTH123  Path takes no empty name
        return hashlib.file_digest(stream, "sha256").hexdigest()


def json_checksum(value: Any) -> str:
    """SHA-256 of a value as JSON, whatever the order of keys or the spaces of a file with it."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


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
    """A temporary path, whose content comes to stand in `path` on success; removed on any failure.

    It is in the folder of `path` and renamed, so that no reader finds half a file. What `path` was
    before stays as it is otherwise: its mode and owner, the symbolic link that it is, or the FIFO
    or device, into which the content is then written.

    Raises:
        InputError: the folder is missing.
        OutputError: it is not writable, or the disk is full.
    """
    check_writable(path)
    try:
        if _is_stream(path):
            with _copied_to(path) as temporary:
                yield temporary
            return
        target = Path(os.path.realpath(path))
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            _put_in_place(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None


def move(source: Path, path: Path) -> None:
    """Puts a whole file in the place of `path`, as `atomic_path` does.

    Raises:
        OutputError: that cannot be; `source` is still there.
    """
    try:
        if not path.is_symlink() and not _is_stream(path):
            _put_in_place(source, path)
            return
        with atomic_path(path) as temporary:
            shutil.copyfile(source, temporary)
        source.unlink()
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None


def _is_stream(path: Path) -> bool:
    """Whether it is a FIFO or a device. Raises OSError, as for a link that leads to itself."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _copied_to(path: Path) -> Iterator[Path]:
    """A temporary path, whose content is written into a FIFO or a device at the end."""
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / path.name
        yield temporary
        with temporary.open("rb") as content, path.open("wb") as stream:
            shutil.copyfileobj(content, stream)


def _put_in_place(temporary: Path, path: Path) -> None:
    """Renames a file over `path`, whose mode and owner it gets, once it is on the disk."""
    try:
        former = path.stat()
    except FileNotFoundError:
        temporary.chmod(0o666 & ~_umask())
    else:
        with contextlib.suppress(OSError):  # of another user's, which only root may give away
            os.chown(temporary, former.st_uid, former.st_gid)
        temporary.chmod(stat.S_IMODE(former.st_mode))
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    temporary.replace(path)
    _sync_folder(path.parent)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder next to `path`; renamed to it on success, removed on any failure.

    Raises:
        FolderExistsError: another process has filled `path` in the meantime; that folder stays.
        InputError: the folder above is missing, not writable, or the disk is full.
    """
    try:
        above = Path(os.path.realpath(path)).parent
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=above))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        for path_below in temporary.rglob("*"):
            if path_below.is_dir():
                _sync_folder(path_below)
            else:
                with path_below.open("rb") as written:
                    os.fsync(written.fileno())
        _sync_folder(temporary)
        try:
            temporary.rename(os.path.realpath(path))
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            raise FolderExistsError(f"{path}: another process has written it meanwhile") from None
        _sync_folder(temporary.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """While it lasts other processes that lock the same file or folder wait.

    Not where the file system has no locks. Raises OSError where there is no such file or folder.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        unlock(handle)
        os.close(handle)


def unlock(handle: int) -> None:
    """Frees an open file for others: closing would not do, as a forked process may have it, too."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)


def _sync_folder(folder: Path) -> None:
    """Writes a folder's names to the disk: a rename may be lost with the power before that."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # file systems that cannot; the file is there
            os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    """The process's, which is not touched where the system tells it: other threads make files."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    with _UMASK:
        umask = os.umask(0o077)
        os.umask(umask)
    return umask
