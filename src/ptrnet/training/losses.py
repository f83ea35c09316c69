"""The loss of known answers. No Lightning here."""

import torch
from torch import Tensor

from ptrnet.masks import gather_tokens, length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import Batch, CutBatch


def losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """The mean negative log-likelihood of a token, and `(B,)` whether every token was likeliest.

    The latter is whether greedy decoding gives the answer: until its first wrong token it is fed
    the same tokens as here.
    """
    log_probs = model.log_probs(*batch)
    real = length_mask(batch.target_lengths, batch.targets.shape[1])
    likelihood = gather_tokens(log_probs, batch.targets)
    right = (log_probs.argmax(-1) == batch.targets) | ~real
    # `where`, not a product: a target after the END may point at padding, whose log p is -inf.
    return -torch.where(real, likelihood, 0).sum() / real.sum().clamp(min=1), right.all(1)


def cut_losses(model: PointerModel, batch: CutBatch) -> tuple[Tensor, Tensor]:
    """The loss of answers that are cut, and `(B,)` whether the token after the cut was likeliest.

    The loss is the mean negative log-likelihood of the token after the cut, plus the mean one of
    the tokens after it: that one token counts as much as all the others.
    """
    log_probs = model.rest_log_probs(*batch)
    num_known, steps = batch.num_known, log_probs.shape[1]
    rest = batch.targets[:, num_known : num_known + steps]
    real = length_mask(batch.target_lengths - num_known, steps)
    likelihood = gather_tokens(log_probs, rest)
    sums, counts = torch.where(real, likelihood, 0).sum(0), real.sum(0)
    next_token = sums[0] / counts[0].clamp(min=1)
    later_tokens = sums[1:].sum() / counts[1:].sum().clamp(min=1)
    right = (log_probs[:, 0].argmax(-1) == rest[:, 0]) | ~real[:, 0]
    return -next_token - later_tokens, right
