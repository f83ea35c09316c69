"""Read, write, check and lock whole files."""

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from ptrnet.errors import InputError, OutputError, PtrnetError


class FolderExistsError(InputError):
    """A folder that we wanted to create exists and is not empty."""


def exists(path: str | Path) -> bool:
    """Whether the file or folder exists."""
    return os.path.exists(path)  # noqa: PTH110  Path.exists raises for names that are too long


def checksum(content: bytes | str | Path) -> str:
    """Return the SHA-256 of bytes, or of the file at a path, as hexadecimal digits.

    Raises OSError if the file cannot be read.

    Examples:
        >>> checksum(b"")[:8]
        'e3b0c442'
    """
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with open(content, "rb") as stream:  # noqa: PTH123  Path("") is the current folder
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_writable(path: Path) -> None:
    """Raise InputError for a path that is a folder, or whose parent folder is missing.

    If the path is a symbolic link, check its target. A link in a circle has none.
    """
    if os.path.isdir(path):  # noqa: PTH112  Path.is_dir raises for names that are too long
        raise InputError(f"{path}: is a folder, expected a file")
    is_link = os.path.islink(path)  # noqa: PTH114
    target = Path(os.path.realpath(path)) if is_link else path
    if is_link and target.is_symlink():
        raise InputError(f"{path}: cannot be written: it is a symbolic link to itself")
    if not os.path.isdir(target.parent):  # noqa: PTH112
        raise InputError(f"{path}: cannot be written: there is no folder {target.parent}")


def to_standard_output(lines: Iterable[str]) -> None:
    """Print whole lines. If the reader has closed the pipe, no error is raised.

    Raises:
        InputError: standard output cannot be written, for example because the disk is full.
    """
    if sys.stdout is None:  # the parent process closed standard output
        raise InputError("standard output: cannot be written: it is closed")
    try:
        sys.stdout.writelines(lines)
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise Python would try to write its buffer again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise InputError(f"standard output: cannot be written: {error.strerror}") from None


@contextlib.contextmanager
def named_failure(failure: str, kind: type[PtrnetError] = InputError) -> Iterator[None]:
    """Raise `kind` instead of OSError: the failure, such as "a.csv: cannot be read", and why."""
    try:
        yield
    except OSError as error:
        raise kind(f"{failure}: {error.strerror or error}") from None


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` if the block succeeds.

    If the block fails, the temporary file is removed.

    The temporary file is in the folder of `path` and is renamed, so a reader finds the whole old
    file or the whole new file. The new file has the mode of the old file. If `path` is a symbolic
    link, the link's target is replaced. If `path` is a FIFO or a device, the content is written to
    that FIFO or device at the end.

    Raises:
        InputError: the folder is missing.
        OutputError: the folder is not writable, or the disk is full.

    Examples:
        >>> with atomic_path(Path("answer.txt")) as temporary:
        ...     temporary.write_text("42")
    """
    check_writable(path)
    with named_failure(f"{path}: cannot be written", OutputError):
        # Write into a FIFO or a device, which no rename can replace.
        if exists(path) and not stat.S_ISREG(path.stat().st_mode):
            with tempfile.TemporaryDirectory() as folder:
                temporary = Path(folder) / path.name
                yield temporary
                with temporary.open("rb") as content, path.open("wb") as stream:
                    shutil.copyfileobj(content, stream)
            return
        target = Path(os.path.realpath(path))
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        temporary = _temporary_path(target)
        try:
            temporary.touch(0o666 if mode is None else 0o600)  # the old file may be private
            yield temporary
            if mode is not None:
                temporary.chmod(mode)
            _sync(temporary)
            temporary.replace(target)
            _sync(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder. On success the folder is renamed to `path`, else it is removed.

    Raises:
        FolderExistsError: another process wrote a folder `path` in the meantime. The folder of
            the other process stays.
        InputError: the parent folder is missing or not writable, or the disk is full.
    """
    target = Path(os.path.realpath(path))
    temporary = _temporary_path(target)
    try:
        temporary.mkdir()
        yield temporary
        for written in (*temporary.rglob("*"), temporary):
            _sync(written)
        try:
            temporary.rename(target)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            raise FolderExistsError(f"{path}: another process wrote it in the meantime") from None
        _sync(target.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock on a file or folder. The lock affects only processes that lock the same path.

    The lock ends with the block, or when the process ends. If the file system has no locks, the
    block runs without a lock.

    Raises:
        InputError: another process has the lock and `wait` is False.
        OSError: there is no such file or folder.
    """
    from filelock import lock_descriptor, unlock_descriptor

    handle = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            if not lock_descriptor(handle, blocking=wait):
                raise InputError(f"{path}: another process is writing it")
        yield
    finally:
        with contextlib.suppress(OSError):
            # Closing is not enough if a forked process has the handle, too.
            unlock_descriptor(handle)
        os.close(handle)


def _temporary_path(path: Path) -> Path:
    """Return a hidden, unused path in the folder of `path`. Renames need the same file system."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}")


def _sync(path: Path) -> None:
    """Write a file's content, or a folder's names, to the disk.

    Otherwise, a power failure may undo a rename, or leave a renamed file empty.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():  # some file systems cannot sync folders
            raise
    finally:
        os.close(handle)
