"""Any number of instances, answered chunk by chunk: by many processes, and killed they go on."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, ClassVar, Protocol, TypeVar

from ptrnet import evaluation
from ptrnet.data import checks, formats
from ptrnet.data.bulk.engine import CHUNK, BulkWork, chunks, content_of, count_instances
from ptrnet.decoding import Decoder
from ptrnet.kernels import loading
from ptrnet.models.base import PointerModel
from ptrnet.tasks.base import Task
from ptrnet.types import Example

Item = TypeVar("Item")


class SolvesExamples(Protocol):
    """A solver that answers examples."""

    model: PointerModel
    task: Task

    def warn_of(self, examples: Iterable[Example], decoder: Decoder) -> None:
        """Warns of what is unlike the training."""
        ...

    def solve_chunk(
        self, chunk: Sequence[Example], decoder: Decoder, constrained: bool, augment: int
    ) -> list[Example]:
        """The examples with the model's answers."""
        ...


class Evaluated(SolvesExamples, evaluation.Evaluated, Protocol):
    """The same, with the likelihoods that an evaluation measures."""


@dataclass(frozen=True)
class Answering:
    """How each instance is answered: the arguments of `Solver.solve`."""

    activity: ClassVar[str] = "solving"

    decoder: Decoder
    constrained: bool
    augment: int

    def check_usable(self, task: Task, chunk: list[Example]) -> None:
        """Refuses examples that cannot be worked on, before any is. Every one can be answered."""

    def examples(self, solver: SolvesExamples, chunk: list[Example]) -> list[Example]:
        """The examples with the solver's answers."""
        return solver.solve_chunk(chunk, self.decoder, self.constrained, self.augment)


@dataclass(frozen=True)
class Scoring(Answering):
    """How each instance is answered, and its answer measured against the known one."""

    activity: ClassVar[str] = "evaluating"

    def check_usable(self, task: Task, chunk: list[Example]) -> None:
        """Refuses examples without answers."""
        for example in chunk:
            checks.required_answer(example, task)

    def examples(self, solver: Evaluated, chunk: list[Example]) -> list[Example]:  # type: ignore[override]
        """The examples with the answers and their scores as `extra`."""
        return evaluation.with_scores(solver, chunk, super().examples(solver, chunk))


@dataclass(frozen=True)
class KeepingScores(Scoring):
    """The same, for a file that keeps what else the examples say."""

    def check_usable(self, task: Task, chunk: list[Example]) -> None:
        """Refuses examples without answers, or without room for scores."""
        super().check_usable(task, chunk)
        evaluation.check_room_for_scores(task, chunk)


def work_on_file(
    solver: SolvesExamples, source: str, output: str, how: Answering
) -> BulkWork[list[Example]]:
    """The work of answering a file; a pipe is read but once, so that it cannot be gone on with."""

    def chunks_after(done: int) -> Iterator[list[Example]]:
        examples = formats.read(source, solver.task)
        checked = formats.output_format(output, source).checked(examples, solver.task)
        return _usable_chunks(solver, how, islice(checked, done, None))

    is_file = source != "-" and Path(source).is_file()
    total = count_instances(source) if is_file else None
    return BulkWork(
        task=solver.task,
        activity=how.activity,
        compute=partial(_compute, solver, how, total is None or total > CHUNK),
        items_after=chunks_after,
        resume_key={**content_of(Path(source)), **_resume_key(solver, how)} if is_file else None,
        total=total,
        is_checked=True,
    )


def work_in_memory(
    solver: SolvesExamples, examples: Sequence[Example], how: Answering
) -> BulkWork[list[Example]]:
    """The work of answering examples that are all there; where it is stopped, nothing is kept."""
    return BulkWork(
        task=solver.task,
        activity=how.activity,
        compute=partial(_compute, solver, how, len(examples) > CHUNK),
        items_after=lambda done: _usable_chunks(solver, how, examples[done:]),
        resume_key=None,
        total=len(examples),
    )


def work_on_fresh(
    solver: SolvesExamples, generation: BulkWork[Item], how: Answering
) -> BulkWork[Item]:
    """The work of answering examples in the process that generates them."""
    assert generation.resume_key is not None
    return replace(
        generation,
        activity=how.activity,
        compute=partial(_compute_fresh, solver, how, generation.compute),
        resume_key={**generation.resume_key, **_resume_key(solver, how)},
    )


def _usable_chunks(
    solver: SolvesExamples, how: Answering, examples: Iterable[Example]
) -> Iterator[list[Example]]:
    for chunk in chunks(examples):
        how.check_usable(solver.task, chunk)
        solver.warn_of(chunk, how.decoder)  # here: other processes would say it again
        yield chunk


def _compute(
    solver: SolvesExamples, how: Answering, has_chunks: bool, chunk: list[Example]
) -> list[Example]:
    """A chunk's answers, by the same code whichever chunks this process has answered before."""
    if has_chunks:
        loading.at_once()
    return how.examples(solver, chunk)


def _compute_fresh(
    solver: SolvesExamples, how: Answering, generate: Callable[[Item], list[Example]], item: Item
) -> list[Example]:
    return how.examples(solver, generate(item))


def as_they_come(
    solver: SolvesExamples, examples: Iterable[Example], how: Answering
) -> Iterator[Example]:
    """The examples with answers, each as soon as it has been read; many at once where many wait.

    What reading raises is raised after the answers to what was read before.
    """
    waiting: Queue[Example | Exception] = Queue(CHUNK)
    Thread(target=_read, args=(examples, waiting), daemon=True).start()
    while True:
        chunk, end = _all_that_wait(waiting)
        solver.warn_of(chunk, how.decoder)
        yield from how.examples(solver, chunk)
        if end is _END:
            return
        if end is not None:
            raise end


_END = EOFError()  # follows the last example


def _read(examples: Iterable[Example], waiting: "Queue[Example | Exception]") -> None:
    try:
        for example in examples:
            waiting.put(example)
    except Exception as error:
        waiting.put(error)
    else:
        waiting.put(_END)


def _all_that_wait(
    waiting: "Queue[Example | Exception]",
) -> tuple[list[Example], Exception | None]:
    """What has been read, at least one example or the end; and the end, where it was reached."""
    chunk: list[Example] = []
    while not chunk or not waiting.empty():
        item = waiting.get()
        if isinstance(item, Exception):
            return chunk, item
        chunk.append(item)
    return chunk, None


def _resume_key(solver: SolvesExamples, how: Answering) -> dict[str, Any]:
    """What decides the answers to an instance: the network's numbers, and the decoder."""
    weights = hashlib.sha256(repr(sorted(solver.model.settings().items())).encode())
    for name, tensor in sorted(solver.model.state_dict().items()):
        weights.update(name.encode())
        weights.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return {
        "weights": weights.hexdigest(),
        "decoder": repr(how.decoder),
        "constrained": how.constrained,
        "augment": int(how.augment),
    }
