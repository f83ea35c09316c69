"""`Solver`: the one face of a trained model, in memory, on files and on disk."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from os import fspath
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ptrnet.data.dataset import (
    Dataset,
    examples_of,
    has_answer,
    instances_of,
    one_example,
)
from ptrnet.decoding import Decoder, Greedy
from ptrnet.errors import InputError, check_int, short
from ptrnet.models.base import num_weights
from ptrnet.parallel import LOCAL
from ptrnet.progress import Bar
from ptrnet.solver.answer import Answer, cost_of
from ptrnet.solver.predict import PredictJob, SampledAnswers, sample_answers
from ptrnet.solver.stored import HubMixin
from ptrnet.solver.trained_range import Message, TrainedRange
from ptrnet.types import Ends, Example

if TYPE_CHECKING:
    from ptrnet.data.tables import Columns
    from ptrnet.evaluation import Evaluation
    from ptrnet.metrics.interval import Measure
    from ptrnet.solver.explain import Importance
    from ptrnet.tasks.custom import Custom

# Instances that are answered together in memory, so that those of near sizes share a batch; fewer
# if a progress bar counts them.
CHUNK_SIZE, CHUNK = 4096, 250


class Solver(HubMixin):
    """Answers instances of one task with one trained network.

    Args:
        model: the network.
        task: what it was trained for, with its settings.
        trained: facts about the training, which stand in the model's files.
        card: what its files tell people of it, Markdown; empty where nobody wrote any.
    """

    @cached_property
    def trained_range(self) -> TrainedRange:
        """Messages about instances that are unlike those of the training."""
        return TrainedRange(self.task, self.trained)

    def solve(
        self,
        instances: Any,
        decoder: Decoder | None = None,
        *,
        set_id: str = "",
        constrained: bool = True,
        augment: int = 1,
    ) -> Any:
        """The answer to one instance, or to each of a list.

        Args:
            instances: an array, tensor or frame `(n, d)`, or nested lists of that shape, is one
                instance (`(n,)` as well where d = 1); a list of instances, an array `(B, n, d)`
                or a `Dataset` is many. Numbers are real, of any type. Points outside the
                unit square, or within a 64th of its side, are made to fill it by one shift and
                one scale; for the task `custom` each feature is standardized as in training.
                If an answer is right except for elements nearer to each other than models
                resolve, the tasks `sort`, `hull` and `delaunay` make it exact.
            decoder: `ptrnet.Greedy()` when None; `ptrnet.Beam(8)` searches wider.
            set_id: if the instances are a long table, a frame or a file, its column whose value
                the rows of an instance share. The columns that the model reads are found by name.
            constrained: whether only what the task allows as an answer is considered.
            augment: the number of views of each instance that are answered: turned, mirrored,
                shuffled. The result is the answer of least cost, or the likeliest over all views.

        Returns:
            0-based indices, an array; for many instances a list of them.

        Raises:
            InputError: an instance that is empty, misshapen, too large or not finite, or of what
                is no real number: masked arrays, strings, dates, complex numbers.

        Warns:
            OutOfDistributionWarning: the first time that an instance has more or fewer elements
                than the model was trained on, or features far from those.
        """
        instances = self._sets(instances, set_id=set_id)
        data, is_one = instances_of(instances, self.task)
        solved = self.predict(data, decoder, constrained=constrained, augment=augment)
        answers = [solved.outputs(row) for row in range(len(solved))]
        return answers[0] if is_one else answers

    def answer(
        self,
        instances: Any,
        decoder: Decoder | None = None,
        *,
        set_id: str = "",
        constrained: bool = True,
        augment: int = 1,
    ) -> Any:
        """As `solve`, with what is known of each answer: its likelihood, cost, time, warnings.

        Args, errors: as in `solve`. Nothing is warned of: each answer has its warnings.

        Returns:
            An `Answer`, or a list of them, whose `outputs` are what `solve` gives.
        """
        instances = self._sets(instances, set_id=set_id)
        data, is_one = instances_of(instances, self.task)
        began = perf_counter()
        job = self.job(decoder, constrained, augment)
        solved = [row for chunk in data.chunks(CHUNK_SIZE) for row in job(chunk)]
        seconds = (perf_counter() - began) / max(1, len(solved))
        decoder = job.decoder
        answers = [self._answer(example, decoder, seconds) for example in solved]
        return answers[0] if is_one else answers

    def _answer(self, answered: Example, decoder: Decoder, seconds: float) -> Answer:
        assert answered.outputs is not None and answered.log_prob is not None
        return Answer(
            inputs=answered.inputs,
            outputs=answered.outputs,
            log_prob=answered.log_prob,
            cost=cost_of(self.task, answered),
            decoder=decoder.name,
            seconds=seconds,
            warnings=tuple(text for _, text in self.messages_of(answered, decoder)),
            task=self.task,
            elements=_pointed_at(answered),
            example=answered,
        )

    def predict(
        self,
        data: Iterable[Example],
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        jobs: int = 1,
        backend: str = LOCAL,
        activity: str = "",
    ) -> Dataset:
        """Return the instances with the model's answers and their log-probabilities.

        Args:
            data: validated instances: a `Dataset`, or rows of one.
            decoder: this, `constrained` and `augment` as in `solve`.
            jobs: processes, 1 or more; -1 for one a core.
            backend: where they run: "local", or a cluster of "dask" or "ray".
            activity: what a progress bar says; no bar if it is empty.

        Raises:
            InputError: a decoder that does not serve the task, or another bad option.

        Warns:
            OutOfDistributionWarning: as in `solve`.
        """
        job, data = self.job(decoder, constrained, augment), self._dataset(data)
        if jobs != 1 or backend != LOCAL:
            from ptrnet.solver import on_files

            solved = on_files.solve_in_memory(self, job, data, activity, jobs, backend)
        else:
            solved = []
            with Bar(activity, len(data)) as bar:
                for chunk in self.warned(data.chunks(CHUNK if activity else CHUNK_SIZE), job):
                    solved.append(job(chunk))
                    bar.add(len(chunk))
        if len(solved) == 1:
            return solved[0]
        log_probs = [np.zeros(0), *(s.log_probs for s in solved if s.log_probs is not None)]
        answers = [s.outputs(row) for s in solved for row in range(len(s))]
        return data.with_answers(answers, np.concatenate(log_probs))

    def job(self, decoder: Decoder | None, constrained: bool, augment: int) -> PredictJob:
        """Return the function that answers a chunk. Raises InputError for a bad option."""
        decoder = decoder or Greedy()
        self._check_options(decoder, augment)
        return PredictJob(self.model, self.task, decoder, constrained, augment)

    def check_ends(self, job: PredictJob, ends: Ends) -> None:
        """Refuse ends that the search would not keep, or of another task than tours."""
        from ptrnet.tasks.tsp import check_ends

        check_ends(self.task, ends)
        if not job.constrained and ends != Ends():
            raise InputError("start, end and open go with constrained decoding")
        if job.decoder.needs_circular and None not in (ends.start, ends.end):
            raise InputError(f"{job.decoder.name} decoding does not keep both ends of a tour")

    def warned(self, chunks: Iterable[Dataset], job: PredictJob) -> Iterator[Dataset]:
        """Yield the chunks; warn, in this process, of instances that are unlike the training."""
        for chunk in chunks:
            self.warn_of(chunk, job.decoder)
            yield chunk

    def warn_of(self, examples: Iterable[Example], decoder: Decoder) -> None:
        """Warn of instances that are unlike the training, once for each way.

        Raises:
            InputError: an instance that no network can read.
        """
        for example in examples:
            reason = self.task.unreadable(example)
            if reason:
                raise InputError(f"{example.source}: {reason}")
            self.trained_range.warn(self.messages_of(example, decoder))

    def _check_options(self, decoder: Decoder, augment: int) -> None:
        """Refuse a decoder that does not serve the task, and a bad number of views."""
        if not isinstance(decoder, Decoder):
            raise InputError(f"decoder: expected one such as ptrnet.Beam(8), got {short(decoder)}")
        needs_more = (decoder.needs_decomposable and not self.task.decomposable) or (
            decoder.needs_circular and not self.task.circular
        )
        if needs_more:
            raise InputError(f"{decoder.name} decoding does not serve {self.task.name}")
        check_int("augment", augment, 1)

    def sample(
        self,
        instances: Any,
        size: int = 16,
        *,
        temperature: float = 1.0,
        constrained: bool = True,
        seed: int | None = None,
    ) -> SampledAnswers:
        """Draws answers, with log-probabilities to learn from.

        For learning loops of one's own: `log_probs` has gradients by the weights of `model`, where
        torch records them, and is that of the very policy that drew: renormalised over what is
        allowed. The gradient of `((cost - baseline) * log_probs).mean()` is REINFORCE's. Unlike
        those of `solve`, the answers are not corrected for nearly equal elements.

        Args:
            instances: as `solve` takes them; one is a batch of one. They are answered together.
            size: answers of each instance, K.
            temperature: above 0; they are drawn from p^(1/temperature).
            constrained: whether only what the task allows as an answer is drawn.
            seed: of the random numbers; None: each call draws anew, from torch's generator.

        Returns:
            Lists of answers, and `(B, K)` log-probabilities.

        Raises:
            InputError: no instance, one that cannot be used, a size or a temperature out of range.
        """
        from ptrnet.decoding import Sample

        data, _ = instances_of(instances, self.task)
        if not len(data):
            raise InputError("instances: expected at least one, got none")
        task = self.task
        constraint = task.build_constraint() if constrained else task.free_constraint()
        return sample_answers(
            self.model,
            self.task,
            [example.inputs for example in data],
            Sample(size, temperature, seed),
            constraint,
        )

    def messages_of(self, example: Example, decoder: Decoder) -> Iterator[Message]:
        """How an instance is unlike the training, whatever was said before."""
        if not decoder.needs_decomposable:  # which solves parts, of other sizes
            yield from self.trained_range.size_messages(example)
        yield from self.trained_range.feature_messages(example)

    def log_likelihoods(self, examples: Any) -> Any:
        """`log p(C | P)` of each example's answer, in the canonical form that models train on.

        Args:
            examples: pairs of inputs `(n, d)` and outputs `(m,)`, in any form that `solve` and
                `fit` take; or `Example`s. Or one tuple of inputs and outputs.

        Returns:
            `(B,)` float64; of one example a float.

        Raises:
            InputError: an example without an answer, or that cannot be used.
            NotFiniteError: log-probabilities that are NaN.
        """
        known, is_one = examples_of(examples, self.task)
        from ptrnet.solver.scoring import log_likelihoods_of

        log_likelihoods = log_likelihoods_of(self.model, self.task, known)
        return float(log_likelihoods[0]) if is_one else log_likelihoods

    def scores(self, instances: Any, *, set_id: str = "") -> Any:
        """A number for each element: the higher, the earlier it stands or the surer it belongs.

        They are the logarithms of `predict_proba` for a choice, grades and a permutation, and the
        log-odds for a set, a subset and a sequence.

        Args:
            instances: one or many, in any form that `solve` takes.
            set_id: as in `solve`.

        Returns:
            `(n,)` for one instance, a list of such arrays for many.

        Raises:
            InputError: as in `solve`; or the model is not one of a user's own examples.
        """
        data, is_one = self._scored(instances, set_id)
        from ptrnet.solver.scoring import element_scores

        scores = element_scores(self.model, self._own_task(), data)
        return scores[0] if is_one else scores

    def predict_proba(self, instances: Any, *, set_id: str = "") -> Any:
        """A probability for each element; which one depends on the kind of the answers.

        - A choice: that the element is chosen, a softmax over the elements.
        - Grades and permutations: that the element stands first, a softmax as well.
        - Sets, subsets and sequences: that the element belongs to the answer. Each element has a
          probability of its own, so they do not add up to 1.

        Args, returns, errors: as of `scores`.
        """
        data, is_one = self._scored(instances, set_id)
        from ptrnet.solver.scoring import element_probabilities

        probabilities = element_probabilities(self.model, self._own_task(), data)
        return probabilities[0] if is_one else probabilities

    def explain(
        self, examples: Any, *, repeats: int = 5, seed: int = 0, **columns: str
    ) -> dict[str, Any]:
        """How much the model loses if the values of a field are shuffled, for each of its fields.

        This is permutation importance (Breiman 2001), by the metric of the kind of the answers. If
        two fields say the same, the model may lose little without either.

        Args:
            examples: with the true answers, in any form that `evaluate` takes.
            repeats: how often each field is shuffled.
            seed: of the shuffles.
            columns: of a long table, as in `evaluate`.

        Returns:
            `metric`, its `value` with the 95% interval `low` to `high` over `count` instances, and
            `importance`: by field what the metric loses, with its interval, the greatest first.

        Raises:
            InputError: as in `evaluate`; or the model is not one of a user's own examples.
        """
        return self.importance(self._sets(examples, **columns), repeats, seed).to_dict()

    def importance(
        self, examples: Any, repeats: int = 5, seed: int = 0, activity: str = ""
    ) -> "Importance":
        """Return the measures of `explain` as objects.

        Args:
            examples: this and the next two as in `explain`.
            activity: what a progress bar says; no bar if it is empty.
        """
        from ptrnet.solver.explain import importance_of_fields

        check_int("repeats", repeats, 1)
        task = self._own_task()
        data, _ = examples_of(examples, task)
        if not len(data):
            raise InputError("examples: expected at least one, got none")
        return importance_of_fields(self.job(None, True, 1), task, data, repeats, seed, activity)

    def plot_reliability(self, examples: Any, ax: Any = None, **columns: str) -> Any:
        """Draw how often the model is right, by the probability that it gives.

        Of a choice, grades and a permutation that is the probability of the likeliest first
        element, of a set, a subset and a sequence that of each element; see `predict_proba`.

        Args:
            examples: with the true answers, in any form that `evaluate` takes.
            ax: as in `plot`.
            columns: of a long table, as in `evaluate`.

        Returns:
            The axes.

        Raises:
            InputError: as in `evaluate`; or the model is not one of a user's own examples.
            MissingExtraError: matplotlib is not installed.
        """
        from ptrnet.plots.figure import axes_or_new
        from ptrnet.plots.reliability import draw_reliability
        from ptrnet.solver.scoring import claims_of

        task = self._own_task()
        data, _ = examples_of(self._sets(examples, **columns), task)
        ax = axes_or_new(ax)
        draw_reliability(ax, *claims_of(self.model, task, data))
        return ax

    def _scored(self, instances: Any, set_id: str) -> tuple[Dataset, bool]:
        """Return instances whose elements can be scored, and whether it is one."""
        task = self._own_task()
        data, is_one = instances_of(self._sets(instances, set_id=set_id), task)
        self.warn_of(data, Greedy())
        return data, is_one

    def _own_task(self) -> "Custom":
        from ptrnet.tasks.custom import Custom

        if not isinstance(self.task, Custom):
            raise InputError(
                f"expected a model of examples of one's own, got one of task {self.task.name}"
            )
        return self.task

    def attention(self, instances: Any) -> Any:
        """The pointer's distribution at each step of an answer (V 2.3: attention is the answer).

        Args:
            instances: one or many, in any form that `solve` takes: the answer is the one that
                `solve` gives. Or an `Example`, a tuple of inputs and outputs, or a list of these.

        Returns:
            Probabilities `(m, S + n)`, special slots first and then the elements as they stand in
            the instance; and the answer's tokens `(m,)`, END included. Each step's distribution
            is given the tokens before it. For many a list of such pairs.

        Raises:
            InputError: an instance or an answer that cannot be used.
        """
        from ptrnet.attention import attention

        answered, is_one = self._with_answers(instances)
        attentions = [attention(self.model, self.task, example) for example in answered]
        return attentions[0] if is_one else attentions

    def _with_answers(self, instances: Any) -> tuple[Dataset, bool]:
        """Return examples with answers as they are, others with the model's; and whether one."""
        first = instances[:1] if isinstance(instances, list) else [instances]
        if any(has_answer(item, self.task) for item in first):
            return examples_of(instances, self.task)
        data, is_one = instances_of(instances, self.task)
        return self.predict(data), is_one

    def evaluate(
        self,
        examples: Any,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        **columns: str,
    ) -> dict[str, dict[str, Any]]:
        """The task's metrics of the model's answers, as `ptrnet evaluate --json` has them.

        Args:
            examples: with the true answers, in any form that `log_likelihoods` takes.
            decoder: this and the others as in `solve`.
            columns: of a long table, `set_id` and one of `chosen`, `rank`, `grade` and `member`, as
                in `ptrnet.read_table`.

        Returns:
            For each metric its `value` with the 95% interval `low` to `high`, over `count`
            instances; `log_likelihood` is that of the true answers. None where nothing could be
            measured, or where the paper's rule says FAIL: then `fail` is True.

        Raises:
            InputError: no example, one without an answer, or one that cannot be used.
        """
        data, _ = examples_of(self._sets(examples, **columns), self.task)
        if not len(data):
            raise InputError("examples: expected at least one, got none")
        measures = self.measure(data, decoder, constrained=constrained, augment=augment)
        return {metric: measure.to_dict() for metric, measure in measures.items()}

    def measure(
        self,
        examples: Iterable[Example],
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        activity: str = "",
    ) -> "dict[str, Measure]":
        """Return the measures of `evaluate` as objects.

        Args:
            examples: with the true answers.
            decoder: this and the others as in `predict`.
        """
        examples = self._dataset(examples)
        answered = self.predict(
            examples, decoder, constrained=constrained, augment=augment, activity=activity
        )
        return self.score(examples, answered)

    def score(
        self, examples: Iterable[Example], answered: Iterable[Example]
    ) -> "dict[str, Measure]":
        """Return the measures of answers that are there already.

        Args:
            examples: with the true answers.
            answered: the same examples with the model's answers, from `predict`.
        """
        from ptrnet.evaluation import evaluate
        from ptrnet.solver.scoring import judgements_of

        examples, answered = self._dataset(examples), self._dataset(answered)
        judgements = judgements_of(self.model, self.task, examples)
        return evaluate(self.task, examples, answered, *judgements)

    def _sets(self, values: Any, **columns: str) -> Any:
        """Return the sets of a long table as a dataset; other values as they are."""
        if not any(columns.values()):
            return values
        from ptrnet.data import formats
        from ptrnet.data.tables import Columns, Sets

        return Sets(formats.table_of(values), Columns(**columns)).dataset(self.task)

    def _dataset(self, rows: Iterable[Example]) -> Dataset:
        return Dataset.of(rows, self.task.item_size)

    def solve_file(
        self,
        file: str | Path,
        output: str | Path,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        start: int | None = None,
        end: int | None = None,
        open: bool = False,
        jobs: int = 1,
        backend: str = LOCAL,
        columns: "Columns | None" = None,
    ) -> None:
        """Answer every instance of a file, and write the answers to another file.

        The file is read, answered and written in chunks, so memory does not grow with it. If a
        call that writes a file of lines (.txt, .jsonl, .parquet) is stopped, its finished chunks
        stay in `OUTPUT.partial/`, and the same call continues.

        Args:
            file: the instances, in any format; "-" is standard input.
            output: where the answers go; its extension is the format, "-" is standard output. From
                standard input to standard output, each answer is printed as soon as its line has
                been read.
            decoder: this and the next two as in `solve`.
            start: this and the next two as in `ptrnet.label`. With both ends the network begins
                with them; if an end of an open path is free, a closed tour is cut.
            end: see `start`.
            open: see `start`.
            jobs: processes, 1 or more; -1 for one a core.
            backend: where they run: "local", or a cluster of "dask" or "ray".
            columns: of a long table, `ptrnet.data.tables.Columns`; None for other files. The output
                has all columns of the table, and one more for the answers.

        Raises:
            InputError: an instance that cannot be used, by file and line; a file that cannot be
                written, or another unfinished job for it. No file is made then.
            MissingExtraError: format or backend needs a package that is not installed.
        """
        from ptrnet.data.tables import NO_COLUMNS
        from ptrnet.solver import on_files

        job, ends = self.job(decoder, constrained, augment), Ends(start, end, open)
        self.check_ends(job, ends)
        columns = columns or NO_COLUMNS
        on_files.solve_file(self, job, fspath(file), fspath(output), ends, jobs, backend, columns)

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
        by: str | None = None,
        columns: "Columns | None" = None,
    ) -> "Evaluation":
        """Answer every instance of a file, and measure the answers against the file's own.

        Args:
            file: the examples, in any format; "-" is standard input.
            output: a .jsonl or .parquet file for the examples, each with the model's `answer` and
                its scores; a stopped call continues as in `solve_file`. None: not written.
            decoder: this and the others as in `solve_file`.
            by: a field of the whole instance, whose values split the examples: a key of each line,
                or a field that all elements of an instance share.
            columns: of a long table, `ptrnet.data.tables.Columns`; None for other files.

        Returns:
            The measures over all examples, by size, and by the values of the field.

        Raises:
            InputError: an example that cannot be used, or has no answer or no such field, by file
                and line; a file that cannot be written, or another unfinished job for it.
            MissingExtraError: format or backend needs a package that is not installed.
        """
        from ptrnet.data.tables import NO_COLUMNS
        from ptrnet.solver import on_files
        from ptrnet.solver.scoring import EvaluateJob

        job = EvaluateJob(**vars(self.job(decoder, constrained, augment)))
        target = None if output is None else fspath(output)
        columns = columns or NO_COLUMNS
        return on_files.evaluate_file(self, job, fspath(file), target, jobs, backend, by, columns)

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
    ) -> "Evaluation":
        """Draw instances, and measure the model's answers against the task's first labeller.

        The instances are those of `ptrnet.generate` with the same seed.

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
            The measures over all examples, and by size.

        Raises:
            InputError: as `evaluate_file` and `ptrnet.generate` do; sizes that are not known.
            MissingExtraError: format or backend needs a package that is not installed.
        """
        from ptrnet.solver import on_files
        from ptrnet.solver.scoring import EvaluateJob

        job = EvaluateJob(**vars(self.job(decoder, constrained, augment)))
        target = None if output is None else fspath(output)
        return on_files.evaluate_random(self, job, count, n, points, seed, target, jobs, backend)

    def plot(self, points: Any, ax: Any = None) -> Any:
        """Draws the model's answer to one instance, and the true one, dashed, where it is better.

        Args:
            points: the instance, as `solve` takes it, or an example with a known answer: what is
                drawn is still the model's. Or an `Answer`, which is drawn itself.
            ax: matplotlib's axes; those of a new figure when None.

        Returns:
            The axes.

        Raises:
            InputError: not one instance, or one that cannot be used or drawn.
            MissingExtraError: matplotlib is not installed.
        """
        from ptrnet.plots.answer import draw_answered
        from ptrnet.plots.figure import axes_or_new

        if isinstance(points, Answer):
            self._check_task(points)
            return points.plot(ax)
        example = one_example(points, self.task)
        answered = self.predict([example])[0]
        ax = axes_or_new(ax)
        draw_answered(ax, self.task, answered, example.outputs)
        return ax

    def plot_attention(self, points: Any, ax: Any = None) -> Any:
        """Draws where the pointer looked: a row for each step, a column for each token.

        Args:
            points: one instance, as `solve` takes it; or an example or an `Answer`, which is
                followed.
            ax: as in `plot`.

        Raises:
            InputError: as in `plot`, or more than 200 steps or tokens.
        """
        from ptrnet.attention import attention
        from ptrnet.plots.attention import draw_matrix
        from ptrnet.plots.figure import axes_or_new
        from ptrnet.plots.labels import element_names

        known = self._answered(points)
        probabilities, tokens = attention(self.model, self.task, known)
        ax = axes_or_new(ax)
        draw_matrix(ax, probabilities, tokens, self.task.special_names, element_names(known))
        return ax

    def animate(self, points: Any) -> Any:
        """How an answer comes about, step by step.

        Args:
            points: as in `plot_attention`, in the plane.

        Returns:
            matplotlib's animation: `save("answer.gif")` writes it, a notebook shows `to_jshtml()`.

        Raises:
            InputError: as in `plot`, or elements that are no points of the plane.
            MissingExtraError: matplotlib is not installed.
        """
        from ptrnet.attention import attention
        from ptrnet.plots.answer import animate

        known = self._answered(points)
        return animate(self.task, known.inputs, *attention(self.model, self.task, known))

    def _answered(self, points: Any) -> Example:
        """An instance with the answer that is to be followed: its own, or else the model's."""
        if isinstance(points, Answer):
            self._check_task(points)
            return points.example
        example = one_example(points, self.task)
        if example.outputs is not None:
            return example
        return self.predict([example])[0]

    def _check_task(self, answer: Answer) -> None:
        if answer.task.name != self.task.name:
            raise InputError(
                f"expected an answer of task {self.task.name}, got one of {answer.task.name}"
            )

    def __repr__(self) -> str:
        """The task, the network, and what it was trained on and scores."""
        from ptrnet.evaluation import describe_training

        network = f"{type(self.model).__name__}, {num_weights(self.model):,} weights"
        lines = [f"Solver of task {self.task.name}: {network}"]
        return "\n".join([*lines, *describe_training(self.trained)])


def _pointed_at(answered: Example) -> list[Any]:
    """The elements of an answer, in its order; of triangles lists of three."""
    assert answered.outputs is not None
    elements = answered.inputs if answered.elements is None else answered.elements
    if answered.outputs.ndim == 1:
        return [elements[k] for k in answered.outputs]
    return [[elements[k] for k in item] for item in answered.outputs]
