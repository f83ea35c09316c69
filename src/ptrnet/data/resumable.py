"""A file of lines that takes hours to compute: a killed run loses no whole chunk of them.

While FILE is computed, two files grow beside it: `FILE.partial.EXT`, whole examples, a line each,
and `FILE.partial.json`, the facts that decide them. The same work started again goes on behind
the last whole chunk; at the end the lines become FILE.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from ptrnet.data import formats
from ptrnet.errors import InputError, OutputError
from ptrnet.files import atomic_path, check_writable
from ptrnet.tasks.base import Task


class ResumableFile:
    """The lines written so far; a context, in which no other run can write them.

    Args:
        output: the file that the lines become.
        facts: everything that decides the lines but how many there are.
        chunk: lines that are written together.

    Raises:
        InputError: there are lines of other facts, another run writes them, or the folder cannot
            be written.
    """

    def __init__(self, output: Path, facts: Mapping[str, Any], chunk: int) -> None:
        check_writable(output)
        self.output, self.chunk = output, chunk
        self._target = formats.format_of(str(output))
        binary = self._target.capabilities.binary
        self.format = formats.get("jsonl") if binary else self._target  # of the lines
        self.lines_path = output.with_name(f"{output.name}.partial.{self.format.extension}")
        self.facts_path = output.with_name(f"{output.name}.partial.json")
        try:
            begun = self.lines_path.exists()
            self._lock = self.lines_path.open("ab")
        except OSError as error:
            raise InputError(f"{self.lines_path}: cannot be written: {error.strerror}") from None
        try:
            self._claim(facts, begun)
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def trim(self, total: int | None = None) -> int:
        """Cuts off all but whole chunks, and what is beyond `total` lines.

        A last chunk that is not whole stays only where `total` ends in it.

        Returns:
            How many lines are left.
        """
        count, size, whole_count, whole_size = 0, 0, 0, 0
        with self.lines_path.open("r+b") as stream:
            for line in stream:
                size += len(line)
                if not line.endswith(b"\n") or count == total:
                    break
                count += 1
                if count % self.chunk == 0 or count == total:
                    whole_count, whole_size = count, size
            stream.truncate(whole_size)
        return whole_count

    def append(self, chunks: Iterable[bytes]) -> Iterator[int]:
        """Writes chunk by chunk; gives how many lines each had, once it is on the disk."""
        try:
            with self.lines_path.open("ab") as stream:
                for chunk in chunks:
                    stream.write(chunk)
                    stream.flush()
                    os.fsync(stream.fileno())
                    yield chunk.count(b"\n")
        except OSError as error:
            raise OutputError(f"{self.output}: cannot be written: {error.strerror}") from None

    def finish(self, task: Task) -> None:
        """Makes the file of the lines, which are removed."""
        if self.format == self._target:
            self.lines_path.replace(self.output)
        else:
            formats.write(str(self.output), formats.read(str(self.lines_path), task), task)
        self.discard()

    def discard(self) -> None:
        """Removes the lines and the facts."""
        self.facts_path.unlink(missing_ok=True)
        self.lines_path.unlink(missing_ok=True)

    def _claim(self, facts: Mapping[str, Any], begun: bool) -> None:
        """Locks the lines, and compares or writes the facts."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{self.lines_path}: another run is writing it") from None
        if begun:
            self._check_facts(facts)
        else:
            with atomic_path(self.facts_path) as temporary:
                temporary.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")

    def _check_facts(self, facts: Mapping[str, Any]) -> None:
        try:
            former = json.loads(self.facts_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            former = None
        if not isinstance(former, dict):
            raise InputError(
                f"{self.facts_path}: not readable; delete it and {self.lines_path.name}"
            )
        for key in facts:
            if former.get(key) != facts[key]:
                raise InputError(
                    f"{self.lines_path}: holds the beginning of other work ({key} "
                    f"{former.get(key)!r}, asked {facts[key]!r}); finish that, or delete it and "
                    f"{self.facts_path.name}"
                )


def can_resume(path: str) -> bool:
    """Whether a file of that name has lines to go on behind: not standard output, nor a table."""
    return path != "-" and formats.format_of(path).capabilities.multiple
