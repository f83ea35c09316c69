"""What a model says of known answers and of single elements, and the job that evaluates.

Log-likelihoods are of the true answers. Scores are a number for each element of an instance: how
early it stands, or how surely it belongs to the answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, softmax

from ptrnet.data.batches import (
    batch_of,
    bucket_by_size,
    pad_instances,
    token_log_likelihoods,
)
from ptrnet.data.dataset import Dataset
from ptrnet.data.symmetries import augmented_view
from ptrnet.decoding import Greedy
from ptrnet.decoding.log_probs import check_finite
from ptrnet.errors import InputError
from ptrnet.masks import length_mask
from ptrnet.metrics.calibration import first_claims, member_claims
from ptrnet.metrics.sequence import grades_of
from ptrnet.models.base import PointerModel, as_parameters
from ptrnet.solver.predict import MAX_BATCH_ELEMENTS, PredictJob
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import Custom
from ptrnet.types import END, Batch, Example, Floats, Indices, pad_answers

# Elements of a batch whose answers are known: all steps are computed at once, and more rows gain
# nothing.
MAX_KNOWN_ELEMENTS = 8_192
# Scores of such a batch, for each of its elements: 8 MB.
SCORES_PER_ELEMENT = 256
ONE_FIRST = ("permutation", "choice", "grades")  # the kinds of which one element stands first


@dataclass(frozen=True)
class EvaluateJob(PredictJob):
    """Answers chunks of examples, and scores the answers against the known ones."""

    activity: ClassVar[str] = "evaluating"

    def __call__(self, data: Dataset) -> Dataset:
        """Return the examples, with the model's `answer` and its scores in `extra`."""
        from ptrnet.evaluation import with_scores

        answered = super().__call__(data)
        return with_scores(self.task, data, answered, *judgements_of(self.model, self.task, data))


class Judgements(NamedTuple):
    """What a model says of examples, besides its own answers."""

    log_likelihoods: Floats  # (B,), of the true answers
    element_scores: list[Floats]  # (n,) each; none if the task does not measure them


def judgements_of(model: PointerModel, task: Task, data: Dataset) -> Judgements:
    """Return what the metrics of a task need of a model besides its answers."""
    scores: list[Floats] = []
    if isinstance(task, Custom) and task.score_elements([], []):
        scores = element_scores(model, task, data)
    return Judgements(log_likelihoods_of(model, task, data), scores)


@torch.no_grad()
def log_likelihoods_of(model: PointerModel, task: Task, examples: Sequence[Example]) -> Floats:
    """Return the `(B,)` log-probabilities of B examples' answers, in the form models train on.

    The log-probability of a choice is that among the elements: something has to be chosen.
    """
    if isinstance(task, Custom) and task.kind == "choice":
        scores = element_scores(model, task, Dataset.of(examples))
        return np.array([s[_chosen(e)] for s, e in zip(scores, examples, strict=True)], float)
    log_likelihoods = np.empty(len(examples))
    for indices in _batches(model, task, [len(example.inputs) for example in examples]):
        batch = batch_of([examples[i] for i in indices], task)
        grades = () if batch.grades is None else as_parameters(model, batch.grades)
        batch = Batch(*as_parameters(model, *batch[:4]), *grades)
        log_probs = _target_log_probs(model, batch)
        mask = length_mask(batch.target_lengths, batch.targets.shape[1])
        real = torch.where(mask, log_probs, 0)
        check_finite("log-likelihoods", real.masked_fill(real == -torch.inf, 0))  # -inf: impossible
        sums = real.double().sum(1)
        log_likelihoods[indices] = sums.cpu().numpy()
    return log_likelihoods


def _chosen(example: Example) -> int:
    """Return the one element that was chosen. Raises InputError if there are none, or several."""
    outputs = [] if example.outputs is None else example.outputs.tolist()
    if len(outputs) != 1:
        source = example.source or "example"
        raise InputError(f"{source}: a choice is one element, got {len(outputs)}")
    return int(outputs[0])


def _batches(model: PointerModel, task: Task, counts: Sequence[int]) -> Iterator[list[int]]:
    """Yield the rows of instances of so many elements that share a batch, all steps at once."""
    sizes = [max(n, n * task.max_length(n) // SCORES_PER_ELEMENT) for n in counts]
    return bucket_by_size(sizes, MAX_KNOWN_ELEMENTS, model.one_size)


def _target_log_probs(model: PointerModel, batch: Batch) -> torch.Tensor:
    """`(B, M)` log-probabilities of right tokens; for large answers without `(B, M, S + N)`."""
    rows, steps = batch.targets.shape
    if rows * steps * batch.inputs.shape[1] <= 2 * MAX_BATCH_ELEMENTS * SCORES_PER_ELEMENT:
        return token_log_likelihoods(model.log_probs(*batch[:4]), batch)[0]
    encoded = model.encode(batch.inputs, batch.lengths)
    state, last = encoded.state, torch.zeros_like(batch.targets[:, :1])
    columns = []
    for step in range(steps):
        log_probs, state = model.step(encoded, state, last)
        columns.append(token_log_likelihoods(log_probs, batch, step)[0])
        last = batch.targets[:, step : step + 1]
    return torch.cat(columns, 1)


def element_scores(model: PointerModel, task: Custom, data: Dataset) -> list[Floats]:
    """Return for each instance `(n,)` log-probabilities or log-odds of its elements.

    - `permutation`, `choice`, `grades`: the log-probability that the element stands first.
    - `subset`, `set`, `sequence`: the log-odds that the element belongs to the answer: that the
      model emits it rather than the end, at the step of its greedy answer that decides on the
      element. If elements have fixed scores and the end has one too (Plackett and Luce), the odds
      are those of the element standing before the end, whatever the answer is.
    """
    if task.kind in ONE_FIRST:
        answers = [np.zeros(0, np.int64)] * len(data)
    else:
        answered = PredictJob(model, task, Greedy())(data)
        answers = [example.outputs for example in answered if example.outputs is not None]
    scores: list[Floats] = [np.zeros(0)] * len(data)
    for rows in _batches(model, task, data.sizes.tolist()):
        of_rows = _scores_of_batch(
            model, task, [data[row].inputs for row in rows], [answers[row] for row in rows]
        )
        for row, of_row in zip(rows, of_rows, strict=True):
            scores[row] = of_row
    return scores


@torch.no_grad()
def _scores_of_batch(
    model: PointerModel, task: Custom, instances: list[Floats], answers: list[Indices]
) -> list[Floats]:
    views, orders = zip(
        *(augmented_view(0, task, task.normalize(instance)) for instance in instances), strict=True
    )
    read = [np.argsort(order)[answer] for order, answer in zip(orders, answers, strict=True)]
    targets = (torch.from_numpy(part) for part in task.to_tokens(pad_answers(read)))
    log_probs = model.log_probs(*as_parameters(model, *pad_instances(views), *targets))
    scores = []
    for order, answer, of_steps in zip(orders, read, log_probs.double().cpu().numpy(), strict=True):
        n = len(order)
        of_elements = of_steps[:, task.num_specials : task.num_specials + n]
        in_order = np.empty(n)
        if task.kind in ONE_FIRST:
            in_order[order] = of_elements[0] - np.logaddexp.reduce(of_elements[0])
        else:
            step = np.full(n, len(answer))  # the end's, unless the answer has the element
            step[answer[::-1]] = np.arange(len(answer))[::-1]  # the first step of several
            in_order[order] = of_elements[step, np.arange(n)] - of_steps[step, END]
        scores.append(in_order)
    return scores


def element_probabilities(model: PointerModel, task: Custom, data: Dataset) -> list[Floats]:
    """Return `element_scores` as probabilities, `(n,)` for each instance."""
    of_scores = softmax if task.kind in ONE_FIRST else expit
    return [np.asarray(of_scores(scores)) for scores in element_scores(model, task, data)]


class Claims(NamedTuple):
    """Probabilities that a model gives, and whether what they are of is right."""

    probabilities: Floats  # (num_claims,)
    right: NDArray[np.bool_]  # (num_claims,)
    subject: str  # what is right


def claims_of(model: PointerModel, task: Custom, examples: Dataset) -> Claims:
    """Return the claims of a model about examples, one for each instance or for each element."""
    probabilities = element_probabilities(model, task, examples)
    grades = [grades_of(example) for example in examples]
    if task.kind in ONE_FIRST:
        subject = "the answer is right" if task.kind == "choice" else "the first element is right"
        return Claims(*first_claims(grades, probabilities), subject)
    return Claims(*member_claims(grades, probabilities), "the element is in the answer")
