"""What a model is trained to make small. No Lightning here."""

import torch
from torch import Tensor

from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import Batch


def losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """The mean negative log-likelihood of a token, and `(B,)` whether every token was likeliest.

    The latter is whether greedy decoding gives the answer: it errs where the first wrong token
    is, and until then it is fed the truth.
    """
    log_probs = model.log_probs(*batch)
    real = length_mask(batch.target_lengths, batch.targets.shape[1])
    likelihood = log_probs.gather(2, batch.targets[..., None])[..., 0]
    right = (log_probs.argmax(-1) == batch.targets) | ~real
    # `where`, not a product: behind the end a target may stand on padding, at -inf.
    return -torch.where(real, likelihood, 0).sum() / real.sum().clamp(min=1), right.all(1)
