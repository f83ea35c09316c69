"""The Hard Ptr-Net (C 2.4): the likeliest element is fed on."""

from torch import Tensor

from ptrnet.models.base import pick
from ptrnet.models.parts.free_running import FreeRunningPtrNet


class HardPtrNet(FreeRunningPtrNet):
    """Fed on: `P_k`, `k = argmax a`. The argmax has no gradient, so none flows into `a` here."""

    def mixture(self, a: Tensor, inputs: Tensor) -> Tensor:
        return pick(inputs, a.argmax(-1))


MODEL = HardPtrNet
