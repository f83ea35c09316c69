"""A trained model together with its task: from raw instances to answers."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from ptrnet.attention import attention
from ptrnet.augmentation import Candidate, best_candidate, decode_view
from ptrnet.constraints import Constraint, Free
from ptrnet.data.batches import batch_of, bucket_by_size
from ptrnet.data.examples import examples_of, instances_of, is_example, one_example
from ptrnet.data.trained_range import TrainedRange
from ptrnet.decoding import Decoder, Greedy
from ptrnet.errors import InputError
from ptrnet.evaluation import describe_training, evaluate
from ptrnet.kernels.threads import one_thread
from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel
from ptrnet.pretrained import hub, model_folder
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, Example, Floats

# The elements of a batch, padding and beams included: 64 MB of keys at 256 hidden units.
MAX_BATCH_ELEMENTS = 65_536
# The scores of a batch whose answers are known, for each of its elements: 64 MB again.
SCORES_PER_ELEMENT = 256
# Examples that are read before the first is answered, so that those of near sizes share a batch.
CHUNK_SIZE = 4096
# A batch of up to so many rows and elements, beams included, gains nothing from a second thread.
ROWS_OF_ONE_THREAD, ELEMENTS_OF_ONE_THREAD = 8, 256


class Solver:
    """Answers instances of one task with one trained network.

    Args:
        model: the network.
        task: what it was trained for, with its settings.
        trained: facts about the training, which stand in the model's files.
    """

    def __init__(
        self, model: PointerModel, task: Task, trained: dict[str, Any] | None = None
    ) -> None:
        self.model, self.task, self.trained = model.eval(), task, trained or {}
        self._range = TrainedRange(task, self.trained)

    def solve(
        self,
        instances: Any,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
    ) -> Any:
        """The answer to one instance, or to each of a list.

        Args:
            instances: one is an array, a torch tensor or a frame `(n, d)`, or a list of lists of
                numbers; many are a list of such, or an array or tensor `(B, n, d)`. With d = 1
                an array `(n,)` is one as well. Numbers are real, of any type. Points outside the
                unit square are moved into it by one shift and one scale; for the task `custom`
                each feature is standardized as in training.
            decoder: `ptrnet.Greedy()` when None; `ptrnet.Beam(8)` searches wider.
            constrained: whether only what the task allows as an answer is considered.
            augment: the number of views of each instance that are answered: turned, mirrored,
                shuffled. The result is the answer of least cost, or the likeliest over all views.

        Returns:
            0-based indices, an array; for many instances a list of them.

        Raises:
            InputError: an instance that is empty, misshapen, too large or not finite, or of what
                is no real number: masked arrays, strings, dates, complex numbers.

        Warns:
            OutsideTraining: the first time that an instance has more or fewer elements than
                the model was trained on, or features far from those.
        """
        examples, is_one = instances_of(instances, self.task)
        solved = self.solve_examples(examples, decoder, constrained=constrained, augment=augment)
        answers = [example.outputs for example in solved]
        return answers[0] if is_one else answers

    def solve_examples(
        self,
        examples: Iterable[Example],
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
    ) -> Iterator[Example]:
        """The same examples, in their order, with the model's answers and their log-probability."""
        decoder = decoder or Greedy()
        needs_more = (decoder.needs_decomposable and not self.task.decomposable) or (
            decoder.needs_circular and not self.task.circular
        )
        if needs_more:
            raise InputError(f"{decoder.name} decoding does not serve {self.task.name}")
        if not isinstance(augment, int) or augment < 1:
            raise InputError(f"augment: expected a whole number of 1 or more, got {augment!r}")
        constraint = self.task.build_constraint() if constrained else Free(self.task.min_length)
        rest = iter(examples)
        while chunk := list(islice(rest, CHUNK_SIZE)):
            if not decoder.needs_decomposable:  # which solves parts, of other sizes
                self._range.check_sizes(chunk)
            self._range.check_features(chunk)
            answers = self._solve_chunk(chunk, decoder, constraint, augment)
            for example, answer in zip(chunk, answers, strict=True):
                yield example._replace(outputs=answer.outputs, log_prob=answer.log_prob)

    def _solve_chunk(
        self, chunk: Sequence[Example], decoder: Decoder, constraint: Constraint, num_views: int
    ) -> list[Candidate]:
        """The best answer to each example, decoded in batches of near sizes."""
        answers: dict[int, Candidate] = {}
        sizes = [len(example.inputs) * decoder.size for example in chunk]
        for indices in bucket_by_size(sizes, MAX_BATCH_ELEMENTS):
            instances = [self.task.normalize(chunk[i].inputs) for i in indices]
            rows, largest = len(indices) * decoder.size, max(map(len, instances))
            is_small = rows <= ROWS_OF_ONE_THREAD and rows * largest <= ELEMENTS_OF_ONE_THREAD
            with one_thread() if is_small else nullcontext():
                views = [
                    decode_view(k, instances, self.task, self.model, decoder, constraint)
                    for k in range(num_views)
                ]
            for i, *candidates in zip(indices, *views, strict=True):
                answers[i] = best_candidate(self.task, chunk[i], list(chain(*candidates)))
        return [answers[i] for i in range(len(chunk))]

    def log_likelihoods(self, examples: Any) -> Any:
        """`log p(C | P)` of each example's answer, in the canonical form that models train on.

        Args:
            examples: pairs of inputs `(n, d)` and outputs `(m,)`, in any form that `solve` and
                `fit` take; or `Example`s. Or one tuple of inputs and outputs.

        Returns:
            `(B,)` float64; of one example a float.

        Raises:
            InputError: an example without an answer, or that cannot be used.
        """
        known, is_one = examples_of(examples, self.task)
        log_likelihoods = self._log_likelihoods(known)
        return float(log_likelihoods[0]) if is_one else log_likelihoods

    @torch.no_grad()
    def _log_likelihoods(self, examples: Sequence[Example]) -> Floats:
        """`(B,)` of B examples."""
        log_likelihoods = np.empty(len(examples))
        counts = [len(example.inputs) for example in examples]
        sizes = [max(n, n * self.task.max_length(n) // SCORES_PER_ELEMENT) for n in counts]
        for indices in bucket_by_size(sizes, MAX_BATCH_ELEMENTS):
            batch = batch_of([examples[i] for i in indices], self.task)
            batch = Batch(*(tensor.to(self._device) for tensor in batch))
            log_probs = self._target_log_probs(batch)
            mask = length_mask(batch.target_lengths, batch.targets.shape[1])
            sums = torch.where(mask, log_probs, 0).double().sum(1)
            log_likelihoods[indices] = sums.cpu().numpy()
        return log_likelihoods

    def _target_log_probs(self, batch: Batch) -> torch.Tensor:
        """`(B, M)` log-probabilities of the targets; for large answers without `(B, M, S + N)`."""
        rows, steps = batch.targets.shape
        if rows * steps * batch.inputs.shape[1] <= 2 * MAX_BATCH_ELEMENTS * SCORES_PER_ELEMENT:
            return self.model.log_probs(*batch).gather(2, batch.targets[..., None])[..., 0]
        encoded = self.model.encode(batch.inputs, batch.lengths)
        state, last = encoded.state, torch.zeros_like(batch.targets[:, :1])
        columns = []
        for step in range(steps):
            target = batch.targets[:, step : step + 1]
            log_probs, state = self.model.step(encoded, state, last)
            columns.append(log_probs[:, 0].gather(1, target))
            last = target
        return torch.cat(columns, 1)

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
        answered, is_one = self._with_answers(instances)
        attentions = [attention(self.model, self.task, example) for example in answered]
        return attentions[0] if is_one else attentions

    def _with_answers(self, instances: Any) -> tuple[list[Example], bool]:
        """Examples as they are, and instances with the model's answers; and whether it was one."""
        first = instances[:1] if isinstance(instances, list) else [instances]
        if any(is_example(item, self.task) for item in first):
            return examples_of(instances, self.task)
        examples, is_one = instances_of(instances, self.task)
        return list(self.solve_examples(examples)), is_one

    def evaluate(
        self,
        examples: Any,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
    ) -> dict[str, dict[str, Any]]:
        """The task's metrics of the model's answers, as `ptrnet evaluate --json` has them.

        Args:
            examples: with the true answers, in any form that `log_likelihoods` takes.
            decoder: this and the others as of `solve`.

        Returns:
            For each metric its `value` with the 95% interval `low` to `high`, over `count`
            instances; `log_likelihood` is that of the true answers. None where nothing could be
            measured, or where the paper's rule says FAIL: then `fail` is True.

        Raises:
            InputError: no example, one without an answer, or one that cannot be used.
        """
        known, _ = examples_of(examples, self.task)
        if not known:
            raise InputError("examples: expected at least one, got none")
        answered = self.solve_examples(known, decoder, constrained=constrained, augment=augment)
        return {metric: m.table() for metric, m in evaluate(self, known, answered).items()}

    def plot(self, points: Any, ax: Any = None) -> Any:
        """Draws the model's answer to one instance, and the true one, dashed, where it is better.

        Args:
            points: the instance, as `solve` takes it, or an example with a known answer: what is
                drawn is still the model's.
            ax: matplotlib's axes; those of a new figure when None.

        Returns:
            The axes.

        Raises:
            InputError: not one instance, or one that cannot be used or drawn.
            MissingExtraError: matplotlib is not installed.
        """
        from ptrnet.plots.answer import draw_answered
        from ptrnet.plots.figure import new_axes

        example = one_example(points, self.task)
        (answered,) = self.solve_examples([example])
        ax = new_axes() if ax is None else ax
        draw_answered(ax, self.task, answered, example.outputs)
        return ax

    def plot_attention(self, points: Any, ax: Any = None) -> Any:
        """Draws where the pointer looked: a row for each step, a column for each token.

        Args:
            points: one instance, as `solve` takes it; or an example, whose answer is followed.
            ax: as of `plot`.

        Raises:
            InputError: as of `plot`, or more than 200 steps or tokens.
        """
        from ptrnet.plots.attention import draw_matrix
        from ptrnet.plots.figure import new_axes

        example = one_example(points, self.task)
        known = example if example.outputs is not None else next(self.solve_examples([example]))
        probabilities, tokens = attention(self.model, self.task, known)
        ax = new_axes() if ax is None else ax
        draw_matrix(ax, probabilities, tokens, self.task.special_names)
        return ax

    def __repr__(self) -> str:
        """The task, the network, and what it was trained on and scores."""
        count = sum(parameter.numel() for parameter in self.model.parameters())
        network = type(self.model).__name__
        lines = [f"Solver of task {self.task.name}: {network}, {count:,} weights"]
        return "\n".join([*lines, *describe_training(self.trained)])

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes `config.json` and `model.safetensors`; creates the folder if it is missing."""
        model_folder.save(Path(folder), model_folder.Saved(self.model, self.task, self.trained))

    @classmethod
    def from_pretrained(cls, name: str | Path) -> Self:
        """The solver in a folder, or in a repository of the Hugging Face hub.

        Raises:
            ModelError: the files are missing or broken, or the hub has none of that name.
        """
        is_path = os.path.exists(name)  # noqa: PTH110  Path.exists raises for too long names
        folder = Path(name) if is_path else hub.fetch(str(name))
        return cls(*model_folder.load(folder))

    def push_to_hub(self, repository: str, private: bool = False) -> str:
        """Uploads the files to "owner/name" on the Hugging Face hub; returns the address.

        Raises:
            ModelError: the hub refuses, or is not reached.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return hub.push(Path(folder), repository, private=private)
