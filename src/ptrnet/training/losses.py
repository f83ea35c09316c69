"""The loss of known answers. No Lightning here."""

import torch
from torch import Tensor

from ptrnet.data.batches import token_log_likelihoods
from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import Batch, CutBatch


def losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """The mean of -log p(a right token) over all steps, and `(B,)` which answers are right.

    At a step, each token that can follow the earlier targets in a right answer is right: one, or
    all elements of an equal grade that remain. The second result tells whether at every step each
    right token was likelier than each wrong one. Without ties, and for a model whose scores do not
    depend on the tokens before, that is whether greedy decoding gives a right answer.
    """
    log_probs = model.log_probs(*batch[:4])
    real = length_mask(batch.target_lengths, batch.targets.shape[1])
    likelihood, is_right = token_log_likelihoods(log_probs, batch)
    right = _are_likeliest(log_probs, batch.targets, is_right) | ~real
    # `where`, not a product: a target after the END may point at padding, whose log p is -inf.
    return -torch.where(real, likelihood, 0).sum() / real.sum().clamp(min=1), right.all(1)


def gain_losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """The cross-entropy of the first token against the gains `2^grade - 1`, and `(B,)` as `losses`.

    Divided by their sum, the gains of the elements are a distribution (ListNet; Cao et al. 2007).
    An instance whose elements all have a gain of 0 has nothing to learn: its loss is 0. For a model
    whose scores do not depend on the tokens before.
    """
    assert batch.grades is not None
    log_probs = model.log_probs(*batch[:4])
    first = log_probs[:, 0, -batch.grades.shape[1] :]
    is_element = length_mask(batch.lengths, first.shape[1])
    positive = torch.where(is_element, batch.grades.clamp(min=0), 0)
    highest = positive.amax(1, keepdim=True)
    # Divided by 2^highest, because 2^grade may be infinite: the shares are the same.
    gains = torch.exp2(positive - highest) - torch.exp2(-highest)
    sums = gains.sum(1, keepdim=True)
    shares = gains / torch.where(sums > 0, sums, 1)
    # `where`, not a product: on padding log p is -inf.
    loss = -(shares * torch.where(gains > 0, first, 0)).sum(1)
    real = length_mask(batch.target_lengths, batch.targets.shape[1])
    _, is_right = token_log_likelihoods(log_probs, batch)
    right = _are_likeliest(log_probs, batch.targets, is_right) | ~real
    return loss.sum() / (sums > 0).sum().clamp(min=1), right.all(1)


def cut_losses(model: PointerModel, batch: CutBatch) -> tuple[Tensor, Tensor]:
    """The loss of answers that are cut, and `(B,)` whether the right next tokens are likeliest.

    The loss is the mean of -log p(a right token) after the cut, plus the mean one of the tokens
    after it: that one token counts as much as all the others. Right tokens are as in `losses`.
    """
    num_known = batch.num_known
    log_probs = model.rest_log_probs(*batch[:4], num_known)
    steps = log_probs.shape[1]
    real = length_mask(batch.target_lengths - num_known, steps)
    likelihood, is_right = token_log_likelihoods(log_probs, Batch(*batch[:5]), num_known)
    sums, counts = torch.where(real, likelihood, 0).sum(0), real.sum(0)
    next_token = sums[0] / counts[0].clamp(min=1)
    later_tokens = sums[1:].sum() / counts[1:].sum().clamp(min=1)
    rest = batch.targets[:, num_known : num_known + steps]
    right = _are_likeliest(log_probs, rest, is_right)[:, 0] | ~real[:, 0]
    return -next_token - later_tokens, right


def _are_likeliest(log_probs: Tensor, targets: Tensor, is_right: Tensor | None) -> Tensor:
    """`(B, M)` whether the right tokens of each step are the likeliest ones."""
    if is_right is None:
        return log_probs.argmax(-1) == targets
    least = log_probs.masked_fill(~is_right, torch.inf).amin(-1)
    return least > log_probs.masked_fill(is_right, -torch.inf).amax(-1)
