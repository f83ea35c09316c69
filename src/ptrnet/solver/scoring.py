"""What a model thinks of answers and elements, and the scores of its own answers.

A high score of an element means that it is likely to come first, or to be in the answer.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit

from ptrnet.data.batches import (
    Batch,
    batch_of,
    bucket_by_size,
    pad_instances,
    token_log_likelihoods,
)
from ptrnet.decoding import Greedy
from ptrnet.decoding.search import check_finite
from ptrnet.errors import InputError
from ptrnet.evaluation import evaluate, with_scores
from ptrnet.masks import length_mask
from ptrnet.metrics import Measure, summary
from ptrnet.metrics.calibration import first_claims, member_claims
from ptrnet.metrics.ranking import grades_of
from ptrnet.models.base import PointerModel, as_parameters
from ptrnet.models.parts.scores_once import ScoresOnce
from ptrnet.solver.predict import MAX_BATCH_ELEMENTS, Predictor
from ptrnet.tasks.base import Task
from ptrnet.types import END, Dataset, Example, Floats, Indices, pad
from ptrnet.views import augmented_view, canonicalize_valid, views_of

# Maximum number of elements in a batch with known answers. If the answers are known, we compute all
# steps of a batch at once, so two such batches take no longer than one of twice this size.
MAX_KNOWN_ELEMENTS = 8_192
# A batch has at most MAX_KNOWN_ELEMENTS times this many log-probabilities: one for each instance,
# step and token. They take 8 MB.
SCORES_PER_ELEMENT = 256
ONE_FIRST = ("permutation", "choice", "grades")  # kinds of answers with one best element


@torch.no_grad()
def log_likelihoods_of(model: PointerModel, task: Task, examples: Sequence[Example]) -> Floats:
    """Return the log-probabilities `(B,)` of the answers to B examples.

    We first convert the answers to their canonical form. A choice is always exactly one element. So
    for choices, we normalise probabilities over the elements, without END.
    """
    if task.facts.kind == "choice":
        scores = element_scores(model, task, Dataset.of(examples))
        return np.array([s[_chosen(e)] for s, e in zip(scores, examples, strict=True)], float)
    data = Dataset.of(examples)
    log_likelihoods = np.empty(len(data))
    for indices in _batches(model, task, data.sizes.tolist()):
        batch = batch_of(data, task, indices).map(lambda part: as_parameters(model, part)[0])
        log_probs = _target_log_probs(model, batch)
        mask = length_mask(batch.target_lengths, batch.targets.shape[1])
        real = torch.where(mask, log_probs, 0)
        # -inf is not an error: the model's constraint excludes the answer.
        check_finite("log-likelihoods", real.masked_fill(real == -torch.inf, 0))
        sums = real.double().sum(1)
        log_likelihoods[indices] = sums.cpu().numpy()
    return log_likelihoods


def _chosen(example: Example) -> int:
    """Return the element that was chosen. Raises InputError unless there is exactly one."""
    outputs = [] if example.outputs is None else example.outputs.tolist()
    if len(outputs) != 1:
        source = example.source or "example"
        raise InputError(f"{source}: a choice is one element, got {len(outputs)}")
    return int(outputs[0])


def _batches(model: PointerModel, task: Task, counts: Sequence[int]) -> Iterator[list[int]]:
    """Yield each batch as a list of row numbers. `counts` has the sizes of the instances."""
    sizes = [max(n, n * task.max_length(n) // SCORES_PER_ELEMENT) for n in counts]
    return bucket_by_size(sizes, MAX_KNOWN_ELEMENTS, model.one_size)


def _target_log_probs(model: PointerModel, batch: Batch) -> torch.Tensor:
    """Return the log-probabilities `(B, M)` of the target tokens.

    Large batches are computed step by step, without a tensor `(B, M, S + N)`.
    """
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


def element_scores(model: PointerModel, task: Task, data: Dataset) -> list[Floats]:
    """Return for each instance the log-probabilities or log-odds `(n,)` of its elements.

    - `permutation`, `choice`, `grades`: the log-probability that the element comes first.
    - `subset`, `set`, `sequence`: the log-odds that the element belongs to the answer. We take the
      step of the greedy answer that emits the element. If no step emits the element, we take the
      step that emits END. The score is the log-odds that the model emits the element rather than
      END at this step. In a Plackett-Luce model, the logits of elements and END are the same at
      each step. So the score does not depend on the greedy answer: it is the log-odds that the
      element comes before END.
    """
    if task.facts.kind in ONE_FIRST:
        answers = [np.zeros(0, np.int64)] * len(data)
    else:
        answers = Predictor(model, task, Greedy())(data).all_outputs()
    scores: list[Floats] = [np.zeros(0)] * len(data)
    for rows in _batches(model, task, data.sizes.tolist()):
        of_rows = _scores_of_batch(
            model, task, [data.inputs(row) for row in rows], [answers[row] for row in rows]
        )
        for row, of_row in zip(rows, of_rows, strict=True):
            scores[row] = of_row
    return scores


@torch.no_grad()
def _scores_of_batch(
    model: PointerModel, task: Task, instances: list[Floats], answers: list[Indices]
) -> list[Floats]:
    inputs, lengths, _, orders = views_of(0, instances, task, model)
    read = [np.argsort(order)[answer] for order, answer in zip(orders, answers, strict=True)]
    targets = as_parameters(model, *map(torch.from_numpy, pad(task.to_tokens(read))))
    log_probs = model.log_probs(inputs, lengths, *targets)
    scores = [np.empty(len(order)) for order in orders]
    if task.facts.kind in ONE_FIRST:  # the padding has log-probabilities of -inf
        first = log_probs[:, 0, task.facts.num_specials :].double().log_softmax(-1).cpu().numpy()
        for in_order, order, of_elements in zip(scores, orders, first, strict=True):
            in_order[order] = of_elements[: len(order)]
        return scores
    every = log_probs.double().cpu().numpy()
    for in_order, order, answer, of_steps in zip(scores, orders, read, every, strict=True):
        n = len(order)
        step = np.full(n, len(answer))  # the step of END, for elements outside of the answer
        step[answer[::-1]] = np.arange(len(answer))[::-1]  # reversed, so the first step wins
        of_elements = of_steps[step, task.facts.num_specials + np.arange(n)]
        in_order[order] = of_elements - of_steps[step, END]
    return scores


@torch.no_grad()
def log_sums(model: ScoresOnce, task: Task, data: Dataset) -> Floats:
    """Return `log sum_j exp(u_j)` `(B,)` of the scores u of each instance's elements."""
    sums = np.zeros(len(data))
    for rows in _batches(model, task, data.sizes.tolist()):
        inputs, lengths, _, _ = views_of(0, [data.inputs(row) for row in rows], task, model)
        scores = model.encode(inputs, lengths).scores[:, model.num_specials :]
        sums[rows] = scores.double().logsumexp(1).cpu().numpy()
    return sums


def element_probabilities(model: PointerModel, task: Task, data: Dataset) -> list[Floats]:
    """Return the `element_scores` of each instance, converted to probabilities `(n,)`."""
    return [to_probabilities(task, scores) for scores in element_scores(model, task, data)]


def to_probabilities(task: Task, scores: Floats) -> Floats:
    """Convert the `element_scores` `(n,)` of an instance to probabilities `(n,)`."""
    if task.facts.kind not in ONE_FIRST:
        return np.asarray(expit(scores))
    return np.exp(scores)


def scored(model: PointerModel, task: Task, examples: Dataset, answered: Dataset) -> Dataset:
    """Return examples with the `answer` of a model and its scores in `extra`."""
    return with_scores(task, examples, answered, *_judged(model, task, examples))


def score_answers(
    model: PointerModel, task: Task, examples: Dataset, answered: Dataset
) -> dict[str, Measure]:
    """Return the measures of a model's answers by metric, as `Solver.evaluate` does.

    Examples:
        >>> solver, data = ptrnet.load("hull"), ptrnet.generate("hull", n="5-10", count=100, seed=1)
        >>> answered = solver.predict(data)
        >>> score_answers(solver.model, solver.task, data, answered)["accuracy"].text(3)
        '1.000 (0.963 to 1.000)'
    """
    return evaluate(task, examples, answered, *_judged(model, task, examples))


def _judged(model: PointerModel, task: Task, data: Dataset) -> tuple[Floats, list[Floats]]:
    """Return what metrics need besides the answers: the log-likelihoods and `element_scores`.

    The list is empty if no metric of the task uses scores of elements.
    """
    scores: list[Floats] = []
    if summary.score_elements(task, [], []):
        scores = element_scores(model, task, data)
    return log_likelihoods_of(model, task, data), scores


def claims_of(
    model: PointerModel, task: Task, examples: Dataset
) -> tuple[Floats, NDArray[np.bool_], str, Indices | None, Floats | None]:
    """Return the claims of a model about examples, for `draw_reliability`.

    A claim is a statement to which the model gives a probability: one for each instance if the kind
    of the answers has one best element, otherwise one for each element. Return the probabilities
    `(num_claims,)`, whether each claim is right, what the claims say, and their groups and weights,
    if known.
    """
    probabilities = element_probabilities(model, task, examples)
    grades = [grades_of(example) for example in examples]
    if task.facts.kind in ONE_FIRST:
        subject = (
            "the answer is right" if task.facts.kind == "choice" else "the first element is right"
        )
        return *first_claims(grades, probabilities), subject, examples.groups, examples.weights
    groups = None if examples.groups is None else examples.groups.repeat(examples.sizes)
    weights = None if examples.weights is None else examples.weights.repeat(examples.sizes)
    return *member_claims(grades, probabilities), "the element is in the answer", groups, weights


@torch.no_grad()
def attention(model: PointerModel, task: Task, answered: Example) -> tuple[Floats, Indices]:
    """Return the pointer's probabilities at each step of an answer, given the previous tokens.

    They are `(m, S + n)`, of the special slots (such as END) and then of the elements in the order
    of the instance. Also return the answer's tokens `(m,)`, including END.
    """
    assert answered.outputs is not None
    inputs, order = augmented_view(0, task, task.normalize(answered.inputs))
    position = np.argsort(order)  # the position of each element in the model's input
    outputs = position[answered.outputs]
    if task.order != "given":
        outputs = canonicalize_valid(task, inputs, outputs)
    (tokens,) = task.to_tokens([outputs])
    batch = (*pad_instances([inputs], task.facts.exact_inputs), torch.from_numpy(tokens[None]))
    log_probs = model.log_probs(*as_parameters(model, *batch))
    probabilities = log_probs[0].double().exp().cpu().numpy()
    # If each element has several tokens (`Problem.ways`), sum their probabilities.
    num_specials, ways = task.facts.num_specials, task.facts.ways
    if ways > 1:
        special, of_ways = np.split(probabilities, [num_specials], axis=1)
        of_elements = of_ways.reshape(len(tokens), len(inputs), ways).sum(2)
        probabilities = np.concatenate([special, of_elements], 1)
        element_tokens = (tokens - num_specials) // ways + num_specials
        tokens = np.where(tokens < num_specials, tokens, element_tokens)
    # The special slots come first in the order of the model and in the order of the instance.
    special = np.arange(num_specials)
    from_read, to_read = (np.append(special, i + len(special)) for i in (order, position))
    return probabilities[:, to_read], from_read[tokens]
