"""The log-probabilities of known answers, as `Sample` draws them, with gradients."""

from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.constraints import Constraint
from ptrnet.constraints.base import allowed_tokens
from ptrnet.errors import NotFiniteError
from ptrnet.masks import gather_tokens, length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import END


def check_finite(asked: str, log_probs: Tensor) -> None:
    """Refuses log-probabilities from which no answer can be chosen or judged.

    Args:
        asked: what the model was asked for: a decoder, or log-likelihoods.
        log_probs: of answers.

    Raises:
        NotFiniteError: NaN or infinity.
    """
    if not log_probs.isfinite().all():
        dtype = str(log_probs.dtype).removeprefix("torch.")
        raise NotFiniteError(
            f"{asked}: the model's log-probabilities of answers are not finite, computed in {dtype}"
        )


class SequenceLogProbs(NamedTuple):
    """Log-probabilities of K sequences for each of B instances."""

    constrained: Tensor  # (B, K) under the constraint, as `Sample` draws them
    unconstrained: Tensor  # (B, K) by the model alone, forbidden tokens included


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
    """Log p of each sequence under the constraint, and without it.

    Under the constraint what it forbids has probability 0 at every step, and what it allows sums
    to 1: that is the policy from which REINFORCE (Williams 1992) samples.

    Args:
        model: gives the log-probabilities.
        inputs: `(B, N, d)` instances.
        lengths: `(B,)` elements of each instance.
        tokens: `(B, K, M)`, closed by END and padded with it.
        lengths_with_end: `(B, K)` tokens of each, END included.
        max_lengths: `(B,)` the most tokens of an answer, END left out.
        constraint: which tokens may come next.
        temperature: above 0; what is drawn from is `p^(1/temperature)`.
    """
    size, steps = tokens.shape[1:]
    # From here on the K answers of an instance are rows of their own, (B K, ...).
    inputs, lengths, max_lengths = (
        part.repeat_interleave(size, 0) for part in (inputs, lengths, max_lengths)
    )
    tokens, flat_lengths = tokens.flatten(0, 1), lengths_with_end.flatten()
    log_probs = model.log_probs(inputs, lengths, tokens, flat_lengths)
    num_tokens = log_probs.shape[-1]
    allowed = allowed_tokens(constraint, tokens, lengths, model.num_specials, num_tokens)
    must_end = ~length_mask(max_lengths, steps)
    real = length_mask(flat_lengths, steps)
    only_end = torch.arange(log_probs.shape[-1], device=tokens.device) == END
    allowed = torch.where((must_end | ~real)[..., None], only_end, allowed)
    logits = log_probs / temperature

    def of_sequences(token_log_probs: Tensor) -> Tensor:
        of_tokens = gather_tokens(token_log_probs, tokens)
        return torch.where(real, of_tokens, 0).sum(1).view(lengths_with_end.shape)

    return SequenceLogProbs(
        of_sequences(logits.masked_fill(~allowed, -torch.inf).log_softmax(-1)),
        of_sequences(logits.log_softmax(-1)),
    )
