"""The Multi Ptr-Net (C 2.5): the mean of the likely elements is fed on."""

import torch
from torch import Tensor

from ptrnet.models.parts.free_running import FreeRunningPtrNet
from ptrnet.models.parts.score import product
from ptrnet.models.settings import Threshold


class MultiPtrNet(FreeRunningPtrNet):
    """Fed on: the mean of the `P_j` with `a_j >= threshold`; of the argmax when none reaches it.

    Which elements these are has no gradient, so none flows into `a` here; the learned inputs of
    special slots get theirs.
    """

    Settings = Threshold

    def __init__(self, features: int, num_specials: int, settings: Threshold) -> None:
        super().__init__(features, num_specials, settings)
        self.threshold = settings.threshold

    def mixture(self, a: Tensor, inputs: Tensor) -> Tensor:
        likely = a >= self.threshold
        likeliest = torch.zeros_like(likely).scatter(-1, a.argmax(-1, keepdim=True), True)
        fed = torch.where(likely.any(-1, keepdim=True), likely, likeliest).to(a.dtype)
        return product(fed / fed.sum(-1, keepdim=True), inputs)


MODEL = MultiPtrNet
