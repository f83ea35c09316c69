"""The definition, in plain PyTorch: the oracle of the fast kernels, never on the hot path."""

import torch
from torch import Tensor

from ptrnet.kernels.additive.arguments import check_arguments, precise, valid


def additive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """As `ptrnet.kernels.additive_scores`, by the formula; memory `(B, M, N, H)`."""
    arguments = check_arguments(keys, queries, v, key_lengths, query_lengths)
    keys, queries, v, key_lengths, query_lengths = precise(arguments)
    scores = torch.tanh(keys[:, None] + queries[:, :, None]) @ v
    real = valid(query_lengths, queries.shape[1])[:, :, None]
    real = real & valid(key_lengths, keys.shape[1])[:, None, :]
    return scores.masked_fill(~real, 0.0)
