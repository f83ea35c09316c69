"""The Soft Ptr-Net (C 2.3): the expected element is fed on."""

from torch import Tensor

from ptrnet.models.parts.free_running import FreeRunningPtrNet
from ptrnet.models.parts.score import product


class SoftPtrNet(FreeRunningPtrNet):
    """Fed on: `sum_j a_j P_j`. Gradients flow through the mixture into `a`."""

    def mixture(self, a: Tensor, inputs: Tensor) -> Tensor:
        return product(a, inputs)


MODEL = SoftPtrNet
