"""Instances of different sizes as one padded batch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ptrnet.types import Answers, Floats, Indices


def pad_instances(instances: Sequence[Floats]) -> tuple[Tensor, Tensor]:
    """Instances `(n, d)` as one tensor `(B, N, d)` float32, and lengths `(B,)` int64."""
    lengths = [len(instance) for instance in instances]
    padded = np.zeros((len(instances), max(lengths), instances[0].shape[1]), np.float32)
    for row, instance in zip(padded, instances, strict=True):
        row[: len(instance)] = instance
    return torch.from_numpy(padded), torch.tensor(lengths)


def pad_answers(answers: Sequence[Indices]) -> Answers:
    """Answers of different lengths as one array `(B, M)`: each flat, and padded with zeros."""
    lengths = np.array([answer.size for answer in answers], np.int64)
    padded = np.zeros((len(answers), int(lengths.max(initial=0))), np.int64)
    for row, answer in zip(padded, answers, strict=True):
        row[: answer.size] = answer.ravel()
    return Answers(padded, lengths)
