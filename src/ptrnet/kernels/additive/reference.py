"""The definition, in plain PyTorch: what the fast kernels are tested against.

Its operations PyTorch can record, transform and differentiate as often as wanted.
"""

import torch
from torch import Tensor

from ptrnet.kernels.additive.arguments import Arguments, check_arguments, promote
from ptrnet.kernels.gradients import plain_gradients
from ptrnet.masks import length_mask


def additive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """As `ptrnet.kernels.additive_scores`, by the formula; memory `(B, M, N, H)`, any device."""
    arguments = promote(check_arguments(keys, queries, v, key_lengths, query_lengths))
    is_key = length_mask(arguments.key_lengths, keys.shape[1])
    is_query = length_mask(arguments.query_lengths, queries.shape[1])
    # Padding may hold anything: what is not finite would reach the gradients, as zero times NaN.
    keys = arguments.keys.masked_fill(~is_key[..., None], 0)
    queries = arguments.queries.masked_fill(~is_query[..., None], 0)
    with torch.autocast(keys.device.type, enabled=False):
        scores = torch.tanh(keys[:, None] + queries[:, :, None]) @ arguments.v
    return scores.masked_fill(~(is_query[:, :, None] & is_key[:, None]), 0.0)


def gradients(arguments: Arguments, grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of keys, queries and `v`, then None for the two lengths, as for a `backward`.

    `grad` `(B, M, N)` is that of the scores of `arguments`. They can be differentiated again.
    """
    keys, queries, v, *lengths = arguments

    def formula(*tensors: Tensor) -> tuple[Tensor]:
        return (additive_scores(*tensors, *lengths),)

    return (*plain_gradients(formula, (keys, queries, v), [grad]), None, None)
