"""Log-probabilities of known answers, with gradients."""

from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints import Constraint
from ptrnet.decoding.search import rules_for
from ptrnet.masks import gather_tokens, length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import END


class SequenceLogProbs(NamedTuple):
    """Log-probabilities of K sequences for each of B instances."""

    constrained: Tensor  # (B, K) normalized over the allowed tokens, from which `Sample` draws
    unconstrained: Tensor  # (B, K) normalized over all tokens, including forbidden tokens


def sequence_log_probs(
    model: PointerModel,
    inputs: Tensor,
    lengths: Tensor,
    tokens: Tensor,
    lengths_with_end: Tensor,
    max_lengths: Tensor,
    constraint: Constraint,
    temperature: float = 1.0,
) -> SequenceLogProbs:
    """Return the log-probability of each sequence with and without the constraint.

    With the constraint, forbidden tokens have probability 0 at every step, and the probabilities of
    allowed tokens sum to 1. REINFORCE (Williams 1992) samples from this policy.

    Args:
        model: the model that gives the log-probabilities.
        inputs: `(B, N, d)` instances.
        lengths: `(B,)` number of elements of each instance.
        tokens: `(B, K, M)` sequences. Each ends with END, and is padded with END.
        lengths_with_end: `(B, K)` number of tokens of each sequence, END included.
        max_lengths: `(B,)` maximum number of tokens of an answer, without END.
        constraint: the rules for which tokens may come next.
        temperature: above 0. The tokens are drawn from `p^(1/temperature)`, where p is the model's
            distribution.
    """
    size, steps = tokens.shape[1:]
    # From here on, each of an instance's K sequences is a row: (B K, ...).
    inputs, lengths, max_lengths = (
        part.repeat_interleave(size, 0) for part in (inputs, lengths, max_lengths)
    )
    tokens, flat_lengths = tokens.flatten(0, 1), lengths_with_end.flatten()
    log_probs = model.log_probs(inputs, lengths, tokens, flat_lengths)
    num_tokens = log_probs.shape[-1]
    allowed = _allowed_tokens(rules_for(model, constraint), inputs, lengths, tokens)
    must_end = ~length_mask(max_lengths, steps)
    real = length_mask(flat_lengths, steps)
    only_end = torch.arange(num_tokens, device=tokens.device) == END
    allowed = torch.where((must_end | ~real)[..., None], only_end, allowed)
    logits = log_probs / temperature

    def sum_over_tokens(token_log_probs: Tensor) -> Tensor:
        chosen = gather_tokens(token_log_probs, tokens)
        return torch.where(real, chosen, 0).sum(1).view(lengths_with_end.shape)

    return SequenceLogProbs(
        sum_over_tokens(logits.masked_fill(~allowed, -torch.inf).log_softmax(-1)),
        sum_over_tokens(logits.log_softmax(-1)),
    )


def _allowed_tokens(
    constraint: Constraint, inputs: Tensor, lengths: Tensor, tokens: Tensor
) -> Tensor:
    """Return `(B, M, S + N)` boolean: the tokens allowed at each step of known sequences.

    Args:
        constraint: which tokens may come next.
        inputs: `(B, N, d)` instances.
        lengths: `(B,)` number of elements of each instance.
        tokens: `(B, M)` the sequences.
    """
    state = constraint.begin(inputs, lengths)
    parents = torch.zeros_like(tokens[:, :1])
    allowed = []
    for i in range(tokens.shape[1]):
        allowed.append(constraint.mask(state))
        state = constraint.advance(state, parents, tokens[:, i : i + 1])
    return torch.cat(allowed, 1)
