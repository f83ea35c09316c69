"""A file of lines that takes hours to compute: a killed run loses no whole chunk of them.

While FILE is computed, two files stand beside it: `FILE.partial.EXT`, which grows by an example a
line, and `FILE.partial.json`, the facts that decide the examples. The same work started again goes
on behind the last whole chunk; at the end the lines become FILE.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from ptrnet.data import formats
from ptrnet.errors import InputError, OutputError
from ptrnet.files import atomic_path, check_writable, move
from ptrnet.tasks.base import Task


class ResumableFile:
    """The lines written so far; a context manager, during which no other run can write them.

    Args:
        output: the file that the lines become.
        facts: everything that decides the lines, except how many there are.
        chunk: how many lines are written together.
        defaults: values of facts that a former version did not know, and so did not write.

    Raises:
        InputError: there are lines of other facts, another run writes them, or the folder cannot
            be written.
    """

    def __init__(
        self,
        output: Path,
        facts: Mapping[str, Any],
        chunk: int,
        defaults: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        check_writable(output)
        self.output, self.chunk, self._defaults = output, chunk, defaults
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
        """Cuts off what is behind the last whole chunk, and what is behind `total` lines.

        A last chunk of fewer lines stays only if it ends at line `total`.

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
        """Writes chunk by chunk; gives how many lines each has, once it is on the disk.

        Raises:
            OutputError: a chunk could not be written.
        """
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
        """Makes `output` of the lines, and removes lines and facts.

        Raises:
            OutputError: `output` cannot be written; lines and facts are still there.
        """
        if self.format == self._target:
            move(self.lines_path, self.output)
        else:
            formats.write(str(self.output), formats.read(str(self.lines_path), task), task)
        self.discard()

    def discard(self) -> None:
        """Removes the lines and the facts."""
        self.facts_path.unlink(missing_ok=True)
        self.lines_path.unlink(missing_ok=True)

    def _claim(self, facts: Mapping[str, Any], begun: bool) -> None:
        """Locks the lines; compares the facts with those of a former run, or writes them."""
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
        former = {**self._defaults, **former}
        for key in facts:
            if former.get(key) != facts[key]:
                raise InputError(
                    f"{self.lines_path}: holds the beginning of other work ({key} "
                    f"{former.get(key)!r}, asked {facts[key]!r}); finish that, or delete it and "
                    f"{self.facts_path.name}"
                )


def can_resume(path: str) -> bool:
    """Whether work on a file of that name can be resumed: it holds examples line by line.

    Standard output does not, nor does a format that holds one instance.
    """
    return path != "-" and formats.format_of(path).capabilities.multiple
