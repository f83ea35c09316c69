"""What a solver does with any number of instances: it answers them, and measures its answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from os import fspath
from pathlib import Path
from typing import Any

import numpy as np

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.bulk import engine
from ptrnet.data.bulk.engine import BulkWork
from ptrnet.data.bulk.generate import generation_work
from ptrnet.data.sizes import Sizes
from ptrnet.decoding import Decoder, Greedy
from ptrnet.errors import InputError
from ptrnet.evaluation import Evaluation
from ptrnet.models.base import PointerModel
from ptrnet.parallel import LOCAL, check_backend, check_jobs
from ptrnet.progress import track
from ptrnet.solver.work import (
    Answering,
    KeepingScores,
    Scoring,
    as_they_come,
    work_in_memory,
    work_on_file,
    work_on_fresh,
)
from ptrnet.tasks.base import Task
from ptrnet.types import Example


class Bulk(ABC):
    """Base class of `Solver`: its methods that answer by many processes, of files and others."""

    model: PointerModel
    task: Task
    trained: dict[str, Any]

    @abstractmethod
    def check_options(self, decoder: Decoder, augment: int) -> None:
        """Refuses a decoder that does not serve the task, and a number of views that is none."""

    @abstractmethod
    def warn_of(self, examples: Iterable[Example], decoder: Decoder) -> None:
        """Warns of what is unlike the training."""

    @abstractmethod
    def solve_chunk(
        self, chunk: Sequence[Example], decoder: Decoder, constrained: bool, augment: int
    ) -> list[Example]:
        """The examples with the model's answers."""

    @abstractmethod
    def log_likelihoods(self, examples: Any) -> Any:
        """`(B,)` log-probabilities of the examples' answers."""

    def solve_file(
        self,
        file: str | Path,
        output: str | Path,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        jobs: int = 1,
        backend: str = LOCAL,
    ) -> None:
        """Answers every instance of a file, however long, and writes the answers to another.

        The file is read, answered and written in chunks, so that memory does not grow with it.
        Where a call that writes a file of lines (.txt, .jsonl, .parquet) is stopped, what is done
        stays beside the file, and the same call goes on.

        Args:
            file: the instances, in any format; "-" is standard input.
            output: where the answers go; its extension is the format, "-" is standard output. From
                standard input to standard output each answer comes as soon as its line has.
            decoder: this and the next two as in `solve`.
            jobs: processes, 1 or more; -1 for one a core.
            backend: where they run: "local", or a cluster of "dask" or "ray".

        Raises:
            InputError: an instance that cannot be used, by file and line; a file that cannot be
                written, or the beginning of other work in its place. No file is made then.
            MissingExtraError: format or backend needs a package that is not installed.
        """
        source, target = fspath(file), fspath(output)
        formats.check_output(target, self.task)
        _check_bulk(source, jobs, backend)
        formats.check_not_overwritten(source, target)
        how = Answering(decoder or Greedy(), constrained, augment)
        self.check_options(how.decoder, augment)
        if source == target == "-":
            solved = as_they_come(self, formats.read(source, self.task), how)
            formats.print_as_they_come(solved, self.task)
        else:
            solving = work_on_file(self, source, target, how)
            engine.run(solving, target, source, jobs, backend)

    def solve_all(
        self,
        examples: Sequence[Example],
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        jobs: int = 1,
        backend: str = LOCAL,
    ) -> list[Example]:
        """As `solve_examples`, by many processes and with a progress bar.

        Args, errors: as in `solve_file`.
        """
        check_jobs(jobs)
        check_backend(backend)
        how = Answering(decoder or Greedy(), constrained, augment)
        self.check_options(how.decoder, augment)
        solving = work_in_memory(self, examples, how)
        return list(track(solving.examples(jobs, backend), solving.activity, solving.total))

    def evaluate_file(
        self,
        file: str | Path,
        output: str | Path | None = None,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        jobs: int = 1,
        backend: str = LOCAL,
    ) -> Evaluation:
        """Answers every instance of a file, however long, and measures the answers by the file's.

        Args:
            file: the examples, in any format; "-" is standard input.
            output: where each example goes with the model's `answer` and its scores, .jsonl or
                .parquet. Where the call is stopped, what is done stays beside it, and the same call
                goes on. None: nowhere.
            decoder: this and the others as in `solve_file`.

        Returns:
            The measures of all, and by size.

        Raises:
            InputError: an example that cannot be used or has no answer, by file and line; a file
                that cannot be written, or the beginning of other work in its place.
            MissingExtraError: format or backend needs a package that is not installed.
        """
        source, target = fspath(file), None if output is None else fspath(output)
        how = self._scoring(target, decoder, constrained, augment)
        _check_bulk(source, jobs, backend)
        scoring = work_on_file(self, source, target or "-", how)
        return self._evaluation(scoring, target, source, jobs, backend)

    def evaluate_random(
        self,
        count: int,
        n: str | int | None = None,
        output: str | Path | None = None,
        decoder: Decoder | None = None,
        *,
        points: str | None = None,
        seed: int = 0,
        constrained: bool = True,
        augment: int = 1,
        jobs: int = 1,
        backend: str = LOCAL,
    ) -> Evaluation:
        """Draws instances, and measures the model's answers by those of the task's first labeller.

        They are those of `ptrnet.generate` under the same seed.

        Args:
            count: how many, 1 or more.
            n: the numbers of elements: 50, "5-50" or "5,10,20-30"; None: those of the training.
            output: where each example goes with the model's `answer` and its scores, as of
                `evaluate_file`.
            decoder: this, and what is not named here, as in `solve_file`.
            points: how they are distributed, for tasks that have the setting `points`; None: as
                in the training.
            seed: of what is drawn, 0 or more.

        Returns:
            The measures of all, and by size.

        Raises:
            InputError: as `evaluate_file` and `ptrnet.generate` do; sizes that are not known.
            MissingExtraError: format or backend needs a package that is not installed.
        """
        if n is None and "n" not in self.trained:
            raise InputError("expected n: the model does not say on what sizes it was trained")
        target = None if output is None else fspath(output)
        check_jobs(jobs)
        check_backend(backend)
        task = self.task if points is None else tasks.with_points(self.task, points)
        sizes = Sizes(self.trained["n"] if n is None else n)
        drawn = generation_work(task, sizes, count, seed)
        how = self._scoring(target, decoder, constrained, augment)
        rng = np.random.default_rng(seed)
        for size in (min(sizes), max(sizes)):
            self.warn_of([Example(task.sample(rng, 1, size)[0])], how.decoder)
        scoring = work_on_fresh(self, drawn, how)
        return self._evaluation(scoring, target, None, jobs, backend)

    def _scoring(
        self, target: str | None, decoder: Decoder | None, constrained: bool, augment: int
    ) -> Scoring:
        """How answers are scored, after a look at the options and at where the scores go."""
        if target is not None:
            formats.check_keeps_extra(target, self.task)
        scored_by = Scoring if target is None else KeepingScores
        how = scored_by(decoder or Greedy(), constrained, augment)
        self.check_options(how.decoder, augment)
        return how

    def _evaluation(
        self,
        scoring: BulkWork[Any],
        target: str | None,
        source: str | None,
        jobs: int,
        backend: str,
    ) -> Evaluation:
        if target is None:
            scored = scoring.examples(jobs, backend)
            return Evaluation(self.task, track(scored, scoring.activity, scoring.total))
        engine.run(scoring, target, source, jobs, backend)
        return Evaluation(self.task, formats.read(target, self.task))


def _check_bulk(source: str, jobs: int, backend: str) -> None:
    """Refuses what is wrong of the arguments of bulk work, before any is done."""
    check_jobs(jobs)
    check_backend(backend)
    if source != "-":
        formats.check_input(source)
