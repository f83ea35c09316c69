"""The log-probability of known answers as a sampler draws them, with gradients."""

from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints import Constraint
from ptrnet.constraints.base import allowed_tokens
from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import END


class SequenceLogProbs(NamedTuple):
    """Of K sequences for each of B instances."""

    constrained: Tensor  # (B, K) log p as `Sample` draws them
    unconstrained: Tensor  # (B, K) log p where the model could as well do what is forbidden


def sequence_log_probs(
    model: PointerModel,
    inputs: Tensor,
    lengths: Tensor,
    tokens: Tensor,
    token_lengths: Tensor,
    max_lengths: Tensor,
    constraint: Constraint,
    temperature: float = 1.0,
) -> SequenceLogProbs:
    """Log p of each sequence under the constraint, and without it.

    Under the constraint what it forbids has probability 0 at every step, and what it allows sums
    to 1: that is the policy from which REINFORCE (Williams 1992) samples.

    Args:
        model: gives the log-probabilities.
        inputs: `(B, N, d)` instances.
        lengths: `(B,)` elements of each instance.
        tokens: `(B, K, M)`, closed by END and padded with it.
        token_lengths: `(B, K)` tokens, END included.
        max_lengths: `(B,)` the most tokens of an answer, END left out.
        constraint: which tokens may come next.
        temperature: above 0; p^(1/temperature) is drawn from.
    """
    size, steps = tokens.shape[1:]
    inputs, lengths, max_lengths = (
        part.repeat_interleave(size, 0) for part in (inputs, lengths, max_lengths)
    )
    tokens, flat_lengths = tokens.flatten(0, 1), token_lengths.flatten()
    log_probs = model.log_probs(inputs, lengths, tokens, flat_lengths)
    num_tokens = model.num_specials + inputs.shape[1]
    allowed = allowed_tokens(constraint, tokens, lengths, model.num_specials, num_tokens)
    must_end = torch.arange(steps, device=tokens.device) >= max_lengths[:, None]
    real = length_mask(flat_lengths, steps)
    only_end = torch.arange(log_probs.shape[-1], device=tokens.device) == END
    allowed = torch.where((must_end | ~real)[..., None], only_end, allowed)
    logits = log_probs / temperature

    def summed(log_probs: Tensor) -> Tensor:
        of_tokens = log_probs.gather(2, tokens[..., None])[..., 0]
        return torch.where(real, of_tokens, 0).sum(1).view(token_lengths.shape)

    return SequenceLogProbs(
        summed(logits.masked_fill(~allowed, -torch.inf).log_softmax(-1)),
        summed(logits.log_softmax(-1)),
    )
