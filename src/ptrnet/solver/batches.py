"""Many instances at once: answered, and their answers' likelihoods, in batches of near sizes."""

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import chain

import numpy as np
import torch

from ptrnet.augmentation import Candidate, best_candidate, decode_view
from ptrnet.constraints import Constraint
from ptrnet.data.batches import batch_of, bucket_by_size
from ptrnet.decoding import Decoder
from ptrnet.indexing import gather_tokens
from ptrnet.kernels.threads import one_thread
from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel, as_parameters
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, Example, Floats

# The elements of a batch, padding and beams included: 64 MB of keys at 256 hidden units.
MAX_BATCH_ELEMENTS = 65_536
# The same where answers are known: all steps are computed at once, and many rows gain nothing.
MAX_KNOWN_ELEMENTS = 8_192
# The scores of such a batch, for each of its elements: 8 MB.
SCORES_PER_ELEMENT = 256
# A batch of up to so many rows and elements, beams included, gains nothing from a second thread.
ROWS_OF_ONE_THREAD, ELEMENTS_OF_ONE_THREAD = 8, 256


def answer_chunk(
    model: PointerModel,
    task: Task,
    chunk: Sequence[Example],
    decoder: Decoder,
    constraint: Constraint,
    num_views: int,
) -> list[Candidate]:
    """The best answer to each example.

    Args:
        model: the network.
        task: of the examples.
        chunk: the examples.
        decoder: searches for the answers.
        constraint: what they obey.
        num_views: how many views of each are answered.
    """
    answers: dict[int, Candidate] = {}
    sizes = [len(example.inputs) * decoder.size for example in chunk]
    for indices in bucket_by_size(sizes, MAX_BATCH_ELEMENTS):
        instances = [task.normalize(chunk[i].inputs) for i in indices]
        rows, largest = len(indices) * decoder.size, max(map(len, instances))
        is_small = rows <= ROWS_OF_ONE_THREAD and rows * largest <= ELEMENTS_OF_ONE_THREAD
        with one_thread() if is_small else nullcontext():
            views = [
                decode_view(k, instances, task, model, decoder, constraint)
                for k in range(num_views)
            ]
        for i, *candidates in zip(indices, *views, strict=True):
            answers[i] = best_candidate(task, chunk[i], list(chain(*candidates)))
    return [answers[i] for i in range(len(chunk))]


@torch.no_grad()
def log_likelihoods_of(model: PointerModel, task: Task, examples: Sequence[Example]) -> Floats:
    """`(B,)` log-probabilities of B examples' answers, in the form that models train on."""
    log_likelihoods = np.empty(len(examples))
    counts = [len(example.inputs) for example in examples]
    sizes = [max(n, n * task.max_length(n) // SCORES_PER_ELEMENT) for n in counts]
    for indices in bucket_by_size(sizes, MAX_KNOWN_ELEMENTS):
        batch = batch_of([examples[i] for i in indices], task)
        batch = Batch(*as_parameters(model, *batch))
        log_probs = _target_log_probs(model, batch)
        mask = length_mask(batch.target_lengths, batch.targets.shape[1])
        sums = torch.where(mask, log_probs, 0).double().sum(1)
        log_likelihoods[indices] = sums.cpu().numpy()
    return log_likelihoods


def _target_log_probs(model: PointerModel, batch: Batch) -> torch.Tensor:
    """`(B, M)` log-probabilities of the targets; for large answers without `(B, M, S + N)`."""
    rows, steps = batch.targets.shape
    if rows * steps * batch.inputs.shape[1] <= 2 * MAX_BATCH_ELEMENTS * SCORES_PER_ELEMENT:
        return gather_tokens(model.log_probs(*batch), batch.targets)
    encoded = model.encode(batch.inputs, batch.lengths)
    state, last = encoded.state, torch.zeros_like(batch.targets[:, :1])
    columns = []
    for step in range(steps):
        target = batch.targets[:, step : step + 1]
        log_probs, state = model.step(encoded, state, last)
        columns.append(log_probs[:, 0].gather(1, target))
        last = target
    return torch.cat(columns, 1)
