"""A file of lines that is written over hours: what is there when the work is killed is kept.

Beside FILE grow `FILE.partial.EXT`, whole examples a line each, and `FILE.partial.json`, the facts
that decide them. The same work started again goes on behind the last whole chunk; at the end the
lines become FILE.
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
        output: the file that is to be made.
        facts: everything that decides its lines but how many there are.
        chunk: lines that are written together.

    Raises:
        InputError: lines of other facts are there, another run writes them, or the folder cannot
            be written.
    """

    def __init__(self, output: Path, facts: Mapping[str, Any], chunk: int) -> None:
        check_writable(output)
        self.output, self.chunk = output, chunk
        self.extension = _staged(str(output))
        self.lines = output.with_name(f"{output.name}.partial.{self.extension}")
        self.facts = output.with_name(f"{output.name}.partial.json")
        try:
            begun = self.lines.exists()
            self._lock = self.lines.open("ab")
        except OSError as error:
            raise InputError(f"{self.lines}: cannot be written: {error.strerror}") from None
        try:
            self._claim(facts, begun)
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def kept(self, most: int | None = None) -> int:
        """How many lines are there, in whole chunks and at most `most`; the rest is cut off.

        A last chunk that is not whole counts only where `most` ends in it.
        """
        count, size, kept, place = 0, 0, 0, 0
        with self.lines.open("r+b") as stream:
            for line in stream:
                size += len(line)
                if not line.endswith(b"\n") or count == most:
                    break
                count += 1
                if count % self.chunk == 0 or count == most:
                    kept, place = count, size
            stream.truncate(place)
        return kept

    def append(self, chunks: Iterable[bytes]) -> Iterator[int]:
        """Writes chunk by chunk; gives how many lines each had, once it is on the disk."""
        try:
            with self.lines.open("ab") as stream:
                for chunk in chunks:
                    stream.write(chunk)
                    stream.flush()
                    os.fsync(stream.fileno())
                    yield chunk.count(b"\n")
        except OSError as error:
            raise OutputError(f"{self.output}: cannot be written: {error.strerror}") from None

    def finish(self, task: Task) -> None:
        """Makes the file, whole, of the lines."""
        if formats.of(str(self.output)) == self.extension:
            self.lines.replace(self.output)
        else:
            formats.write(str(self.output), formats.read(str(self.lines), task), task)
        self.discard()

    def discard(self) -> None:
        """Removes the lines and the facts."""
        self.facts.unlink(missing_ok=True)
        self.lines.unlink(missing_ok=True)

    def _claim(self, facts: Mapping[str, Any], begun: bool) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{self.lines}: another run is writing it") from None
        if begun:
            self._check(facts)
        else:
            with atomic_path(self.facts) as temporary:
                temporary.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")

    def _check(self, facts: Mapping[str, Any]) -> None:
        try:
            theirs = json.loads(self.facts.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            theirs = None
        if not isinstance(theirs, dict):
            raise InputError(f"{self.facts}: not readable; delete it and {self.lines.name}")
        for key in facts:
            if theirs.get(key) != facts[key]:
                raise InputError(
                    f"{self.lines}: holds the beginning of other work ({key} {theirs.get(key)!r}, "
                    f"asked {facts[key]!r}); finish that, or delete it and {self.facts.name}"
                )


def has_lines(name: str) -> bool:
    """Whether a file of that name can grow: it holds many examples, and is not standard output."""
    return name != "-" and formats.capabilities(formats.of(name)).several


def _staged(name: str) -> str:
    """The format in which lines wait to become the file `name`: its own where that has lines."""
    extension = formats.of(name)
    return "jsonl" if formats.capabilities(extension).binary else extension
