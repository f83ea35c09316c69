"""The Hard Ptr-Net (C 2.4): the likeliest element is fed next."""

from torch import Tensor

from ptrnet.masks import gather_rows
from ptrnet.models.parts.free_running import FreeRunningPtrNet


class HardPtrNet(FreeRunningPtrNet):
    """Fed next: `P_k`, `k = argmax a`. The argmax has no gradient, so none flows into `a` here."""

    def next_input(self, attention: Tensor, inputs: Tensor) -> Tensor:
        return gather_rows(inputs, attention.argmax(-1))


MODEL = HardPtrNet
