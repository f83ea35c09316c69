"""The Soft Ptr-Net (Chan and Sedoc 2016, 2.3): the next decoder input is the expected element."""

from torch import Tensor

from ptrnet.models.parts.score import matmul_float32
from ptrnet_lab.models.free_running import FreeRunningPtrNet


class SoftPtrNet(FreeRunningPtrNet):
    """The next decoder input is `sum_j a_j P_j` (see `FreeRunningPtrNet`).

    Gradients flow through the next input into `a`.
    """

    def next_input(self, attention: Tensor, inputs: Tensor) -> Tensor:
        return matmul_float32(attention, inputs)


MODEL = SoftPtrNet
