"""The Multi Ptr-Net (C 2.5): the mean of the likely elements is fed next."""

import torch
from torch import Tensor

from ptrnet.models.parts.free_running import FreeRunningPtrNet
from ptrnet.models.parts.score import matmul_float32
from ptrnet.models.settings import ThresholdSettings


class MultiPtrNet(FreeRunningPtrNet):
    """Fed next: the mean of the `P_j` with `a_j >= threshold`; of the argmax when none reaches it.

    Which elements these are has no gradient, so none flows into `a` here; the learned inputs of
    special slots get theirs.
    """

    Settings = ThresholdSettings

    def __init__(self, features: int, num_specials: int, settings: ThresholdSettings) -> None:
        super().__init__(features, num_specials, settings)
        self.threshold = settings.threshold

    def next_input(self, attention: Tensor, inputs: Tensor) -> Tensor:
        likely = attention >= self.threshold
        slots = torch.arange(attention.shape[-1], device=attention.device)
        likeliest = slots == attention.argmax(-1, keepdim=True)
        averaged = likely | (likeliest & ~likely.any(-1, keepdim=True))
        weights = averaged.to(attention.dtype)
        return matmul_float32(weights / weights.sum(-1, keepdim=True), inputs)


MODEL = MultiPtrNet
