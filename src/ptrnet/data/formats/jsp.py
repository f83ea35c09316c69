"""The standard text format of job shops, `.jsp`: the whole file is one instance of `job-shop`.

Lines that begin with # are comments. The first line that is not a comment has the number of jobs
and the number of machines. Each further line is a job: pairs of a machine, counted from 0, and a
duration.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from ptrnet.data import checks
from ptrnet.data.cells import parse_index, parse_number
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import filled_lines
from ptrnet.errors import InputError, short, warn_ambiguous
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CAPABILITIES = Capabilities(multiple=False, answers=False, task="job-shop", stdout_format="jsonl")


def read(path: str, task: Task) -> Iterator[Example]:
    lines = [(k, text.split()) for k, text in filled_lines(path) if text.strip()[0] != "#"]
    if not lines:
        return
    (source, head), *rows = lines
    if len(head) != 2:
        raise InputError(
            f"{source}: expected two numbers, of jobs and of machines, got {short(' '.join(head))}"
        )
    count, machines = (parse_index(word, source) for word in head)
    if count < 1 or machines < 1:
        raise InputError(f"{source}: expected at least one job and one machine")
    if len(rows) != count:
        matrices = "; times and machines in two matrices (Taillard's form) are not read, only pairs"
        raise InputError(
            f"{source}: expected {count} jobs below this line, got {len(rows)}"
            f"{matrices * (len(rows) == 2 * count)}"
        )
    jobs: list[Any] = []
    for source, words in rows:
        if not words or len(words) % 2:
            raise InputError(f"{source}: expected pairs of a machine and a duration")
        job = []
        for machine, duration in zip(words[::2], words[1::2], strict=True):
            number = parse_index(machine, f"{source}: machine")
            if not 0 <= number < machines:
                raise InputError(f"{source}: machine: expected 0 to {machines - 1}, got {number}")
            job.append([number, parse_number(duration, f"{source}: duration")])
        jobs.append(job)
    inputs = checks.check_instance(task.read_instance({"jobs": jobs}, path), task, path)
    few = sum(len(job) < machines for job in jobs)
    if few:
        warn_ambiguous(
            f"{path}: {few} of {count} jobs have fewer operations than there are machines, "
            f"{machines}"
        )
    yield Example(inputs, source=path)


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    for example in examples:
        jobs = task.write_instance(example)["jobs"]
        machines = 1 + max(machine for job in jobs for machine, _ in job)
        stream.write(f"{len(jobs)} {machines}\n")
        for job in jobs:
            stream.write(" ".join(f"{machine} {duration!r}" for machine, duration in job) + "\n")
