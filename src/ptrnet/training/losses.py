"""The loss of known answers. No Lightning here."""

import torch
from torch import Tensor

from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import Batch


def losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """The mean negative log-likelihood of a token, and `(B,)` whether every token was likeliest.

    The latter is whether greedy decoding gives the answer: until its first wrong token it is fed
    the same tokens as here.
    """
    log_probs = model.log_probs(*batch)
    real = length_mask(batch.target_lengths, batch.targets.shape[1])
    likelihood = log_probs.gather(2, batch.targets[..., None])[..., 0]
    right = (log_probs.argmax(-1) == batch.targets) | ~real
    # `where`, not a product: a target behind the END may point at padding, whose log p is -inf.
    return -torch.where(real, likelihood, 0).sum() / real.sum().clamp(min=1), right.all(1)
