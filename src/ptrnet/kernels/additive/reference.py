"""The definition, in plain PyTorch: what the fast kernels are tested against; no model calls it."""

import torch
from torch import Tensor

from ptrnet.kernels.additive.arguments import check_arguments, promote, score_mask


def additive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """As `ptrnet.kernels.additive_scores`, by the formula; memory `(B, M, N, H)`, any device."""
    arguments = promote(check_arguments(keys, queries, v, key_lengths, query_lengths))
    scores = torch.tanh(arguments.keys[:, None] + arguments.queries[:, :, None]) @ arguments.v
    return scores.masked_fill(~score_mask(arguments), 0.0)
