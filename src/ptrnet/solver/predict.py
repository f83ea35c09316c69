"""Answer datasets in batches (`Predictor`), and draw answers at random (`sample_answers`)."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet.constraints import Constraint, machine_of, unconstrained
from ptrnet.data.batches import bucket_by_size, pad_instances
from ptrnet.decoding import Decoder, Greedy
from ptrnet.errors import InputError, check_int, short
from ptrnet.kernels.eager import use_compiled_kernels
from ptrnet.kernels.threads import one_thread
from ptrnet.models.base import PointerModel, as_parameters
from ptrnet.run import CHUNK
from ptrnet.tasks.base import Task
from ptrnet.tasks.tsp.ends import beginning, obey, with_free_end
from ptrnet.types import END, Dataset, Example, Floats, Indices
from ptrnet.views import Candidate, augmented_view, best_candidate, decode_view, settle_valid

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
    """Function that answers chunks of instances, and that can be sent to other processes.

    Args:
        model: the network.
        task: the task of the instances.
        decoder: the search for answers.
        constrained: whether to consider only answers that the task allows.
        augment: the number of views of each instance to answer. The best answer is kept.
        always_compiled: whether networks decode by compiled kernels from the first step on. If
            False, a process computes its first steps in plain PyTorch, and later steps by compiled
            kernels, which may round differently. Jobs of several chunks set True, so that the
            answers to a chunk do not depend on how many chunks the process has answered before.
        improve: whether to improve tours and routes by small moves (`Facts.improve`). Without the
            constraint, answers are never improved. Log-probabilities are those of the network's
            own answers.
    """

    model: PointerModel
    task: Task
    decoder: Decoder
    constrained: bool = True
    augment: int = 1
    always_compiled: bool = False
    improve: bool = True

    def __call__(self, data: Dataset) -> Dataset:
        """Return the instances with the model's answers and their log-probabilities."""
        if self.always_compiled:
            use_compiled_kernels()
        task = self.task
        constraint = (machine_of if self.constrained else unconstrained)(task.facts)
        answers: dict[int, Candidate] = {}
        sizes = (data.sizes * self.decoder.size).tolist()
        beginnings = [beginning(example) for example in data]
        for rows in _batches(sizes, beginnings, self.model.one_size):
            instances = [self.task.normalize(data[row].inputs) for row in rows]
            num_rows, largest = len(rows) * self.decoder.size, max(map(len, instances))
            is_small = (
                num_rows <= ROWS_OF_ONE_THREAD and num_rows * largest <= ELEMENTS_OF_ONE_THREAD
            )
            first = [np.array(beginnings[row], np.int64) for row in rows if beginnings[row]]
            views = []
            with one_thread() if is_small else nullcontext():
                for k in range(self.augment):
                    views.append(
                        decode_view(k, instances, task, self.model, self.decoder, constraint, first)
                    )
            for row, *candidates in zip(rows, *views, strict=True):
                best = best_candidate(self.task, data[row], list(chain(*candidates)))
                # `_with_best_ends` answers copies of the example with given ends. `Reconstruct`
                # would ignore the given ends.
                if not self.decoder.needs_circular:
                    best = self._with_best_ends(data[row], best, constraint)
                outputs = settle_valid(self.task, data[row].inputs, best.outputs)
                improve = self.task.facts.improve
                if self.improve and self.constrained and improve:
                    outputs = improve(data[row], outputs)
                answers[row] = best._replace(outputs=outputs)
        ordered = [answers[row] for row in range(len(data))]
        return data.with_answers(
            [answer.outputs for answer in ordered],
            np.array([answer.log_prob for answer in ordered]),
        )

    def _with_best_ends(
        self, example: Example, best: Candidate, constraint: Constraint
    ) -> Candidate:
        """Return the best path after trying other cities at each free end of an open path.

        If the answer is not an open path, return it unchanged.
        """
        for end in ("end", "start"):
            trials = with_free_end(example, best.outputs, end)
            if trials:
                best = self._best_trial(example, best, trials, constraint)
        if example.rules.is_open:
            best = best._replace(outputs=obey(example, best.outputs))
        return best

    def _best_trial(
        self, example: Example, best: Candidate, trials: list[Example], constraint: Constraint
    ) -> Candidate:
        """Return the cheapest candidate among `best` and the answers to `trials`.

        Args:
            example: the example.
            best: the best answer so far.
            trials: copies of the example with other cities as fixed ends.
            constraint: the constraint on answers.
        """
        inputs = self.task.normalize(example.inputs)
        count = max(MAX_BATCH_ELEMENTS // (len(inputs) * self.decoder.size), 1)
        candidates = [best]
        for first in range(0, len(trials), count):
            some = trials[first : first + count]
            found = decode_view(
                0,
                [inputs] * len(some),
                self.task,
                self.model,
                self.decoder,
                constraint,
                [np.array(beginning(trial)) for trial in some],
            )
            for trial, of_trial in zip(some, found, strict=True):
                candidates += [
                    candidate._replace(outputs=obey(trial, candidate.outputs))
                    for candidate in of_trial
                ]
        costs = self.task.costs(example, [candidate.outputs for candidate in candidates])
        return candidates[int(np.argmin(np.asarray(costs)))]

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


def _batches(
    sizes: list[int], beginnings: list[list[int]], one_size: bool
) -> Iterator[Sequence[int]]:
    """Yield the row numbers of each batch, whose instances have similar sizes.

    Args:
        sizes: the number of elements of each instance, counted once for each prefix.
        beginnings: for each instance the elements with which its answer must begin. In a batch, all
            beginnings have the same length.
        one_size: whether all instances of a batch must have the same size.
    """
    for count in sorted({len(first) for first in beginnings}):
        alike = [row for row, first in enumerate(beginnings) if len(first) == count]
        for rows in bucket_by_size([sizes[row] for row in alike], MAX_BATCH_ELEMENTS, one_size):
            yield [alike[row] for row in rows]


class SampledAnswers(NamedTuple):
    """K answers to each of B instances."""

    answers: list[list[Indices]]  # B lists of K arrays of 0-based indices
    log_probs: Tensor  # (B, K) log-probabilities of the drawn answers, with gradients


def sample_answers(
    model: PointerModel,
    task: Task,
    instances: Sequence[Floats],
    decoder: "Sample",
    constraint: Constraint,
) -> SampledAnswers:
    """Draw answers to instances `(n, d)` at random, in one batch."""
    from ptrnet.decoding.log_probs import sequence_log_probs

    views, orders = zip(
        *(augmented_view(0, task, task.normalize(instance)) for instance in instances), strict=True
    )
    max_lengths = torch.tensor(
        [task.max_length(len(instance)) for instance in instances], device="cpu"
    )
    padded = pad_instances(views, task.facts.exact_inputs)
    inputs, lengths, most = as_parameters(model, *padded, max_lengths)
    tokens, sizes, _ = decoder.decode(model, inputs, lengths, most, constraint)
    answers = [
        [order[task.from_tokens(t[:size])] for t, size in zip(rows, row_sizes, strict=True)]
        for order, rows, row_sizes in zip(orders, tokens.cpu().numpy(), sizes.tolist(), strict=True)
    ]
    closed = torch.nn.functional.pad(tokens, (0, 1), value=END)
    log_probs = sequence_log_probs(
        model, inputs, lengths, closed, sizes + 1, most, constraint, decoder.temperature
    )
    return SampledAnswers(answers, log_probs.constrained)
