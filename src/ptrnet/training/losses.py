"""What a model is trained to make small. No Lightning here."""

import torch
from torch import Tensor

from ptrnet.models.base import PointerModel
from ptrnet.types import Batch, CutBatch


def losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """The mean negative log-likelihood of a token, and `(B,)` whether every token was likeliest.

    The latter is whether greedy decoding gives the answer: it errs where the first wrong token
    is, and until then it is fed the truth.
    """
    log_probs = model.log_probs(*batch)
    steps = torch.arange(batch.targets.shape[1], device=batch.targets.device)
    real = steps < batch.target_lengths[:, None]
    likelihood = log_probs.gather(2, batch.targets[..., None])[..., 0]
    right = (log_probs.argmax(-1) == batch.targets) | ~real
    # `where`, not a product: behind the end a target may stand on padding, at -inf.
    return -torch.where(real, likelihood, 0).sum() / real.sum().clamp(min=1), right.all(1)


def rest_losses(model: PointerModel, cut: CutBatch) -> tuple[Tensor, Tensor]:
    """What `losses` gives, of the rests of answers: the next token counts as much as all others.

    The second is `(B,)` whether the next token was likeliest.
    """
    (_, _, targets, ends), known = cut
    log_probs = model.rest_log_probs(*cut.batch, known)
    rest = targets[:, known : known + log_probs.shape[1]]
    steps = known + torch.arange(rest.shape[1], device=rest.device)
    real = steps < ends[:, None]
    likelihood = log_probs.gather(2, rest[..., None])[..., 0]
    sums, counts = torch.where(real, likelihood, 0).sum(0), real.sum(0)
    following = sums[1:].sum() / counts[1:].sum().clamp(min=1)
    right = (log_probs[:, 0].argmax(-1) == rest[:, 0]) | ~real[:, 0]
    return -sums[0] / counts[0].clamp(min=1) - following, right
