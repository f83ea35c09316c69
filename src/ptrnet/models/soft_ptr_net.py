"""The Soft Ptr-Net (C 2.3): the expected element is fed next."""

from torch import Tensor

from ptrnet.models.parts.free_running import FreeRunningPtrNet
from ptrnet.models.parts.score import matmul_float32


class SoftPtrNet(FreeRunningPtrNet):
    """Fed next: `sum_j a_j P_j`. Gradients flow through this mixture into `a`."""

    def next_input(self, attention: Tensor, inputs: Tensor) -> Tensor:
        return matmul_float32(attention, inputs)


MODEL = SoftPtrNet
