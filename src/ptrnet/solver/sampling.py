"""Answers drawn from a model, with log-probabilities that have gradients."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints import Constraint
from ptrnet.data.padding import pad_instances
from ptrnet.data.symmetries import augmented_view
from ptrnet.decoding import Sample
from ptrnet.decoding.log_probs import sequence_log_probs
from ptrnet.models.base import PointerModel, as_parameters
from ptrnet.tasks.base import Task
from ptrnet.types import END, Floats, Indices


class SampledAnswers(NamedTuple):
    """K answers to each of B instances."""

    answers: list[list[Indices]]  # B lists of K arrays of 0-based indices
    log_probs: Tensor  # (B, K) of each under the policy that drew it, with gradients


def sample_answers(
    model: PointerModel,
    task: Task,
    instances: Sequence[Floats],
    decoder: Sample,
    constraint: Constraint,
) -> SampledAnswers:
    """Draws answers to instances `(n, d)`, normalized here; they share one batch."""
    views, orders = zip(
        *(augmented_view(0, task, task.normalize(instance)) for instance in instances), strict=True
    )
    max_lengths = torch.tensor([task.max_length(len(instance)) for instance in instances])
    inputs, lengths, most = as_parameters(model, *pad_instances(views), max_lengths)
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
