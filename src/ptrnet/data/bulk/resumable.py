"""A file of lines that takes hours to compute: a killed run loses no whole chunk of them.

While FILE is computed, three files stand beside it: `FILE.partial.EXT`, which grows by an example a
line, `FILE.partial.json`, the resume key: all that decides the examples, and `FILE.partial.sums`, a
checksum of the lines up to each chunk's end. The same work started again goes on after the last
whole chunk that is as it was written; at the end the lines become FILE.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from ptrnet.data import formats
from ptrnet.errors import InputError, OutputError, short
from ptrnet.files import atomic_path, check_writable, move, unlock
from ptrnet.tasks.base import Task

_SUM = re.compile(rb"^(\d{1,18}) ([0-9a-f]{64})$", re.MULTILINE)  # a size, and a checksum
_BLOCK = 2**20  # bytes that are read at a time


class ResumableFile:
    """The lines written so far; a context manager, during which no other run can write them.

    Attributes:
        appended: how many lines this run has written.

    Args:
        output: the file that the lines become.
        resume_key: everything that decides the lines, except how many there are.
        chunk: how many lines are written together.
        upgrade: turns a key that a former version wrote into the one that this one would write.

    Raises:
        InputError: there are lines of another key, another run writes them, or the folder cannot
            be written.
    """

    def __init__(
        self,
        output: Path,
        resume_key: Mapping[str, Any],
        chunk: int,
        upgrade: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> None:
        check_writable(output)
        self.output, self.chunk, self._upgrade = output, chunk, upgrade
        self.appended = 0
        self._target = formats.format_of(str(output))
        binary = self._target.capabilities.binary
        self.format = formats.get("jsonl") if binary else self._target  # of the lines
        self.lines_path = output.with_name(f"{output.name}.partial.{self.format.extension}")
        self.key_path = output.with_name(f"{output.name}.partial.json")
        self.sums_path = output.with_name(f"{output.name}.partial.sums")
        try:
            self._lock = _open_locked(self.lines_path)
        except OSError as error:
            raise InputError(f"{self.lines_path}: cannot be written: {error.strerror}") from None
        begun = os.fstat(self._lock.fileno()).st_size > 0
        try:
            self._claim(resume_key, begun)
        except BaseException:
            if not begun:
                self.lines_path.unlink()
            _unlock(self._lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        _unlock(self._lock)

    def trim(self, total: int | None = None) -> int:
        """Cuts off what is damaged or after the last whole chunk, and what is after line `total`.

        A last chunk of fewer lines stays only if it ends at line `total`.

        Returns:
            How many lines are left.

        Raises:
            OutputError: the lines cannot be read, or not be cut.
        """
        try:
            return self._trim(total)
        except OSError as error:
            raise OutputError(f"{self.output}: cannot be written: {error.strerror}") from None

    def _trim(self, total: int | None) -> int:
        written, unchanged = self._check_sums()
        count, size, whole_count, whole_size = 0, 0, 0, 0
        with self.lines_path.open("r+b") as stream:
            for line in stream:
                size += len(line)
                if size > unchanged or not line.endswith(b"\n") or count == total:
                    break
                count += 1
                if count % self.chunk == 0 or count == total:
                    whole_count, whole_size = count, size
            stream.truncate(whole_size)
        if unchanged < written:
            lines = f"{self.lines_path}: damaged after line {whole_count}"
            print(f"{lines}; what follows is computed again", file=sys.stderr)
        return whole_count

    def append(self, chunks: Iterable[bytes]) -> Generator[int]:
        """Writes chunk by chunk; gives how many lines each has, once it is on the disk.

        Raises:
            OutputError: a chunk could not be written.
        """
        try:
            digest, size = hashlib.sha256(), self.lines_path.stat().st_size
            with self.lines_path.open("rb") as stream:
                _read_into(digest, stream, size)
            former = [record for record in self._sums() or [] if _size_of(record) < size]
            records = [b"%s %s\n" % record for record in former]
            records.append(f"{size} {digest.hexdigest()}\n".encode())
            with atomic_path(self.sums_path) as temporary:
                temporary.write_bytes(b"".join(records))
            with self.lines_path.open("ab") as stream, self.sums_path.open("a") as sums:
                for chunk in chunks:
                    stream.write(chunk)
                    stream.flush()
                    os.fsync(stream.fileno())
                    digest.update(chunk)
                    size += len(chunk)
                    sums.write(f"{size} {digest.hexdigest()}\n")
                    sums.flush()
                    count = chunk.count(b"\n")
                    self.appended += count
                    yield count
        except OSError as error:
            raise OutputError(f"{self.output}: cannot be written: {error.strerror}") from None

    def _check_sums(self) -> tuple[int, int]:
        """How many bytes of the lines were written, and how many of them are as they were.

        A checksum is of all lines before its place: one that is right proves what is before it,
        also where another, before it, is damaged itself. Lines without any, of a former version,
        cannot be checked.
        """
        records = self._sums()
        if records is None:
            size = self.lines_path.stat().st_size
            return size, size
        digest, unchanged = hashlib.sha256(), 0
        with self.lines_path.open("rb") as stream:
            for record in records:
                _read_into(digest, stream, _size_of(record) - stream.tell())
                if (stream.tell(), digest.hexdigest().encode()) == (_size_of(record), record[1]):
                    unchanged = stream.tell()
        # A file of checksums that has none is damaged itself: any size above 0 says so.
        return max(map(_size_of, records), default=1), unchanged

    def _sums(self) -> list[tuple[bytes, bytes]] | None:
        """Sizes and checksums, the smallest size first; None where there is no file of them."""
        try:
            return sorted(set(_SUM.findall(self.sums_path.read_bytes())), key=_size_of)
        except FileNotFoundError:
            return None

    def finish(self, task: Task) -> None:
        """Makes `output` of the lines, and removes lines and key.

        Raises:
            OutputError: `output` cannot be written; lines and key are still there.
        """
        if self.format == self._target:
            move(self.lines_path, self.output)
            self._discard_unless_taken()
        else:
            lines = formats.read(str(self.lines_path), task)
            formats.write_checked(str(self.output), lines, task)
            self.discard()

    def _discard_unless_taken(self) -> None:
        """Removes the key and the checksums of lines that have been moved, and the lock with them.

        Another run may have begun at the same path since: then they are that run's.
        """
        with contextlib.suppress(InputError, OSError):
            lock = _open_locked(self.lines_path)
            if not os.fstat(lock.fileno()).st_size:  # else a run that was stopped since has lines
                self.discard()
            _unlock(lock)

    def discard(self) -> None:
        """Removes the lines, the key and the checksums."""
        self.key_path.unlink(missing_ok=True)
        self.sums_path.unlink(missing_ok=True)
        self.lines_path.unlink(missing_ok=True)

    def _claim(self, resume_key: Mapping[str, Any], begun: bool) -> None:
        """Compares the key with that of a former run, or writes it."""
        if begun:
            self._check_key(resume_key)
            return
        with atomic_path(self.key_path) as temporary:
            temporary.write_text(json.dumps(resume_key, indent=1) + "\n", encoding="utf-8")
        self.sums_path.unlink(missing_ok=True)

    def _check_key(self, resume_key: Mapping[str, Any]) -> None:
        try:
            former = json.loads(self.key_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            former = None
        if not isinstance(former, dict):
            raise InputError(f"{self.key_path}: not readable; delete it and {self.lines_path.name}")
        former = self._upgrade(former)
        for name, value in resume_key.items():
            if former.get(name) != value:
                raise InputError(
                    f"{self.lines_path}: holds the beginning of other work ({name} "
                    f"{short(former.get(name), 100)}, asked {short(value, 100)}); finish "
                    f"that, or delete it and {self.key_path.name}"
                )


def _open_locked(path: Path) -> BinaryIO:
    """A file that no other run has, made where it is not there. Raises OSError.

    Raises:
        InputError: another run has it.
    """
    while True:
        stream = path.open("ab")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            raise InputError(f"{path}: another run is writing it") from None
        except OSError:  # a file system without locks
            return stream
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                return stream
        stream.close()  # the run that had it has ended since, and taken it away


def _unlock(stream: BinaryIO) -> None:
    """Closes a file that was locked, so that another run can have it."""
    unlock(stream.fileno())
    stream.close()


def _read_into(digest: Any, stream: BinaryIO, size: int) -> None:
    """Adds the next `size` bytes of a file to a digest, or those that there are."""
    while size > 0 and (content := stream.read(min(size, _BLOCK))):
        digest.update(content)
        size -= len(content)


def _size_of(record: tuple[bytes, bytes]) -> int:
    """How many bytes of the lines a checksum covers."""
    return int(record[0])


def can_resume(path: str) -> bool:
    """Whether work on a file of that name can be resumed: it holds examples line by line.

    Standard output does not, nor does a format that holds one instance.
    """
    return path != "-" and formats.format_of(path).capabilities.multiple
