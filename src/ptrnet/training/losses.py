"""The losses of a training on known answers, and its metrics.

`losses`, `gain_losses` and `cut_losses` return one loss for each answer. The mean of these losses
is the loss of the batch. Answers without tokens (`target_lengths` is 0) have loss 0 and do not
change the mean loss per token. An answer of weight 2 counts as if it was in the batch twice, and an
answer of weight 0 as if it was left out. `ptrnet.training.module` computes them in a training.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ptrnet.data.batches import Batch, token_log_likelihoods
from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel


def losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the losses `(B,)` of whole answers, and which answers `(B,)` are right.

    The mean of the losses is the mean of -log p(a right token) over the steps in all answers.

    A token is right if a right answer can continue with this token. Without grades, only the target
    is right. With grades, all remaining elements of the highest grade are right.

    An answer counts as right if, at every step, each right token is more likely than each wrong
    token. If answers have no ties, or if scores do not depend on earlier tokens, greedy decoding
    then gives a right answer.
    """
    log_probs = model.log_probs(*batch[:4])
    real = length_mask(batch.target_lengths, batch.targets.shape[1])
    likelihood, is_right = token_log_likelihoods(log_probs, batch)
    right = _are_likeliest(log_probs, batch.targets, is_right) | ~real
    # A target after END may be padding, whose log p is -inf. So use `where` and not a product.
    of_answers = -torch.where(real, likelihood, 0).sum(1)
    return _per_token(of_answers, real, batch.weights), right.all(1)


def gain_losses(
    model: PointerModel, batch: Batch, gains: Sequence[float] = ()
) -> tuple[Tensor, Tensor]:
    """Return losses `(B,)` of the first token's distribution, and which answers `(B,)` are right.

    In the target distribution of the first token, probabilities are in proportion to the gains:
    `gains[grade]`, or `2^grade - 1` if there are no `gains` (ListNet; Cao et al. 2007). The mean of
    the losses is the mean cross-entropy between this target and the predicted distribution, over
    the instances whose gains are not all 0. Other instances have loss 0.

    The scores of the model must not depend on earlier tokens. Then greedy decoding gives the order
    of the scores, so an answer is right if each element has a higher score than all elements of
    lower grades.
    """
    assert batch.grades is not None
    grades, is_element = batch.grades, _elements_with_grades(batch)
    shares = gain_shares(grades, is_element, gains)
    log_probs = model.log_probs(batch.inputs, batch.lengths, batch.targets[:, :1])
    first = log_probs[:, 0, -shares.shape[1] :]
    # The log p of padding is -inf. So use `where` and not a product.
    cross_entropy = -(shares * torch.where(shares > 0, first, 0)).sum(1)
    is_pair = is_element[:, :, None] & is_element[:, None] & (grades[:, :, None] > grades[:, None])
    is_wrong = is_pair & ~(first[:, :, None] > first[:, None])  # a NaN is wrong, too
    of_answers = _per_token(cross_entropy, shares.any(1, keepdim=True), batch.weights)
    return of_answers, ~is_wrong.flatten(1).any(1)


def shares_of_gains(batch: Batch, gains: Sequence[float] = ()) -> Tensor:
    """Return `(B, N)`: the share of each element in the gains of its instance; see `gain_shares`.

    The shares are 0 for answers without tokens, too.
    """
    assert batch.grades is not None
    return gain_shares(batch.grades, _elements_with_grades(batch), gains)


def _elements_with_grades(batch: Batch) -> Tensor:
    """`(B, N)` boolean: the elements of answers with tokens. Held-out answers have none."""
    return length_mask(batch.lengths, batch.inputs.shape[1]) & (batch.target_lengths[:, None] > 0)


def gain_shares(grades: Tensor, is_element: Tensor, gains: Sequence[float] = ()) -> Tensor:
    """Return `(B, N)`: the gain of each element, divided by the sum of its instance's gains.

    Gains are those of `gain_losses`. The shares are 0 for padding, and for instances without gains.
    """
    positive = torch.where(is_element, grades.clamp(min=0), 0)
    if gains:  # the grades that have these gains
        of_grades = torch.tensor(gains, dtype=positive.dtype, device=positive.device)
        positive = torch.where(is_element, torch.log2(1 + of_grades)[positive.long()], 0)
    highest = positive.amax(1, keepdim=True)
    # 2^grade may be infinite, so divide all gains by 2^highest. The divisor cancels.
    of_elements = torch.exp2(positive - highest) - torch.exp2(-highest)
    sums = of_elements.sum(1, keepdim=True)
    return of_elements / torch.where(sums > 0, sums, 1)


def cut_losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the losses `(B,)` of cut answers, and which first tokens `(B,)` are predicted right.

    The first token of an answer is here the one right after the cut. The mean of the losses is the
    mean of -log p(a right token) over the first tokens, plus the same mean over all later tokens.
    So the first token weighs as much as all later tokens together. `losses` says which tokens are
    right.
    """
    num_known = batch.num_known
    log_probs = model.rest_log_probs(*batch[:4], num_known)
    steps = log_probs.shape[1]
    real = length_mask(batch.target_lengths - num_known, steps)
    likelihood, is_right = token_log_likelihoods(log_probs, batch, num_known)
    likelihood = torch.where(real, likelihood, 0)
    next_token = _per_token(likelihood[:, 0], real[:, :1], batch.weights)
    later_tokens = _per_token(likelihood[:, 1:].sum(1), real[:, 1:], batch.weights)
    rest = batch.targets[:, num_known : num_known + steps]
    right = _are_likeliest(log_probs, rest, is_right)[:, 0] | ~real[:, 0]
    return -next_token - later_tokens, right


def _per_token(of_answers: Tensor, real: Tensor, weights: Tensor | None) -> Tensor:
    """Return `(B,)` losses whose mean is the mean loss of a token.

    Each answer has the sum of the losses of its tokens, and a weight unless all are 1. `real`
    `(B, M)` is False on padding.
    """
    count = real.sum()
    if weights is not None:
        of_answers, count = of_answers * weights, (real.sum(1) * weights).sum()
    return of_answers / (torch.where(count > 0, count, 1) / len(real))


def _are_likeliest(log_probs: Tensor, targets: Tensor, is_right: Tensor | None) -> Tensor:
    """Return for each step whether all right tokens are more likely than all wrong tokens.

    The result is `(B, M)`. If `is_right` is None, only the target of a step is right.
    """
    if is_right is None:
        return log_probs.argmax(-1) == targets
    least = log_probs.masked_fill(~is_right, torch.inf).amin(-1)
    return least > log_probs.masked_fill(is_right, -torch.inf).amax(-1)
