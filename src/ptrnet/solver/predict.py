"""Answer datasets in batches (`Predictor`), and draw answers at random (`sample_answers`)."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ptrnet.constraints import Constraint, unconstrained
from ptrnet.data.batches import bucket_by_size
from ptrnet.decoding import Decoder, Greedy
from ptrnet.errors import InputError, check_int, short
from ptrnet.kernels import use_compiled_kernels
from ptrnet.kernels.threads import one_thread
from ptrnet.models.base import PointerModel
from ptrnet.run import CHUNK
from ptrnet.tasks.base import Choice, Task
from ptrnet.types import CLOSED, END, Dataset, Example, Floats, Indices
from ptrnet.views import answers_of, best_answer, decode_view, settle_valid, views_of

if TYPE_CHECKING:
    from ptrnet.decoding import Sample

# The maximum number of elements in a batch, including padding. A beam of K counts each element K
# times. With 256 hidden units, the attention keys of a full batch take 64 MB.
MAX_BATCH_ELEMENTS = 65_536
# The maximum numbers of prefixes and of elements in a batch that is decoded in one thread. Elements
# include padding, and are counted once for each prefix. A second thread would not make small
# batches faster.
ROWS_OF_ONE_THREAD, ELEMENTS_OF_ONE_THREAD = 8, 256


@dataclass(frozen=True)
class Predictor:
    """Function that answers chunks of instances, and that can be sent to other processes."""

    model: PointerModel
    task: Task
    decoder: Decoder
    constrained: bool = True  # whether to consider only answers that the task allows
    augment: int = 1  # the number of views of each instance to answer. The best answer is kept.
    # Whether networks decode by compiled kernels from the first step on. If False, a process
    # computes its first steps in plain PyTorch, and later steps by compiled kernels, which may
    # round differently. Jobs of several chunks set True, so that the answers to a chunk do not
    # depend on how many chunks the process has answered before.
    always_compiled: bool = False
    # Whether to improve tours and routes by small moves (`Facts.improve`). Without the constraint,
    # answers are never improved. Log-probabilities are those of the network's own answers.
    improve: bool = True

    @torch.inference_mode()  # each of many small operations is faster than without gradients
    def __call__(self, data: Dataset) -> Dataset:
        """Return the instances with the model's answers and their log-probabilities."""
        if self.always_compiled:
            use_compiled_kernels()
        answers: dict[int, Choice] = {}
        for rows in self._batches(data):
            examples = [data[row] for row in rows]
            for row, example, *views in zip(rows, examples, *self._decode(examples), strict=True):
                best = best_answer(self.task, example, views)
                answers[row] = self._settled(example, self._with_best_ends(example, best))
        ordered = [answers[row] for row in range(len(data))]
        return data.with_answers(
            [outputs for outputs, _ in ordered], np.array([log_prob for _, log_prob in ordered])
        )

    def _batches(self, data: Dataset) -> Iterator[Sequence[int]]:
        """Yield the rows of each batch.

        The instances of a batch have similar sizes (or one size, if the model needs it), and their
        answers have to begin with equally many known elements.
        """
        sizes = (data.sizes * self.decoder.size).tolist()
        by_known: dict[int, list[int]] = {}
        for row, example in enumerate(data):
            by_known.setdefault(len(self._beginning(example)), []).append(row)
        for _, alike in sorted(by_known.items()):
            totals = [sizes[row] for row in alike]
            for rows in bucket_by_size(totals, MAX_BATCH_ELEMENTS, self.model.one_size):
                yield [alike[row] for row in rows]

    def _decode(self, examples: Sequence[Example]) -> list[list[list[Choice]]]:
        """Return for each view the answers to each example of a batch."""
        num_rows = len(examples) * self.decoder.size
        largest = max(len(example.inputs) for example in examples)
        is_small = num_rows <= ROWS_OF_ONE_THREAD and num_rows * largest <= ELEMENTS_OF_ONE_THREAD
        with one_thread() if is_small else nullcontext():
            return [self._decode_view(k, examples) for k in range(self.augment)]

    def _decode_view(self, k: int, examples: Sequence[Example]) -> list[list[Choice]]:
        constraint = self.task if self.constrained else unconstrained(self.task.facts)
        instances = [example.inputs for example in examples]
        first = [self._beginning(example) for example in examples]
        return decode_view(k, instances, self.task, self.model, self.decoder, constraint, first)

    def _beginning(self, example: Example) -> list[int]:
        """Return the elements with which an answer must begin."""
        ends = self.task.facts.ends
        return ends.beginning(example) if ends else []

    def _with_best_ends(self, example: Example, best: Choice) -> Choice:
        """Try other ends of an open path. `Reconstruct` would ignore given ends."""
        ends = self.task.facts.ends
        if ends is None or example.rules == CLOSED or self.decoder.needs_circular:
            return best
        count = max(MAX_BATCH_ELEMENTS // (len(example.inputs) * self.decoder.size), 1)

        def answer(copies: list[Example]) -> Iterator[list[Choice]]:
            for first in range(0, len(copies), count):
                yield from self._decode_view(0, copies[first : first + count])

        return ends.best(example, best, answer)

    def _settled(self, example: Example, best: Choice) -> Choice:
        """Correct an answer with nearly equal elements, and improve it by small changes."""
        outputs, log_prob = best
        outputs = settle_valid(self.task, example.inputs, outputs)
        improve = self.task.facts.improve
        if self.improve and self.constrained and improve:
            outputs = improve(example, outputs)
        return outputs, log_prob

    def for_many(self, count: int | None) -> "Predictor":
        """Return the predictor for `count` instances; None if their number is not known."""
        return replace(self, always_compiled=count is None or count > CHUNK)

    def key(self) -> dict[str, Any]:
        """Return everything that the answers depend on, except the task and the instances."""
        weights = hashlib.sha256(repr(sorted(self.model.settings().items())).encode())
        for name, tensor in sorted(self.model.state_dict().items()):
            weights.update(name.encode())
            weights.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return {
            "weights": weights.hexdigest(),
            "decoder": repr(self.decoder),
            "constrained": self.constrained,
            "augment": int(self.augment),
            "improve": self.improve,
        }


def predictor_of(
    model: PointerModel,
    task: Task,
    decoder: Decoder | None = None,
    constrained: bool = True,
    augment: int = 1,
    improve: bool = True,
) -> Predictor:
    """Return the function that answers chunks of instances. See `Predictor` for the arguments.

    Raises:
        InputError: the decoder cannot be used with the task, or `augment` is below 1.
    """
    decoder = Greedy() if decoder is None else decoder
    if not isinstance(decoder, Decoder):
        raise InputError(f"decoder: expected one such as ptrnet.Beam(8), got {short(decoder)}")
    needs_more = (decoder.needs_decomposable and not task.facts.decomposable) or (
        decoder.needs_circular and not task.facts.circular
    )
    if needs_more:
        raise InputError(f"{decoder.name} decoding cannot be used with task {task.name}")
    check_int("augment", augment, 1)
    return Predictor(model, task, decoder, constrained, augment, improve=improve)


def sample_answers(
    model: PointerModel,
    task: Task,
    instances: Sequence[Floats],
    decoder: "Sample",
    constraint: Constraint,
) -> tuple[list[list[Indices]], Tensor]:
    """Draw K answers to each of B instances `(n, d)` at random, in one batch.

    Their log-probabilities `(B, K)` have gradients.
    """
    from ptrnet.decoding.log_probs import sequence_log_probs

    inputs, lengths, most, orders = views_of(0, instances, task, model)
    found = decoder.decode(model, inputs, lengths, most, constraint)
    closed = torch.nn.functional.pad(found.tokens, (0, 1), value=END)
    log_probs = sequence_log_probs(
        model, inputs, lengths, closed, found.lengths + 1, most, constraint, decoder.temperature
    )
    return answers_of(task, orders, found), log_probs.constrained
