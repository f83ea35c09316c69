"""The Hard Ptr-Net (Chan and Sedoc 2016, 2.4): the next decoder input is the likeliest element."""

from torch import Tensor

from ptrnet.masks import gather_rows
from ptrnet_lab.models.free_running import FreeRunningPtrNet


class HardPtrNet(FreeRunningPtrNet):
    """The next decoder input is `P_k` with `k = argmax a` (see `FreeRunningPtrNet`).

    The argmax has no gradient, so no gradient flows through the next input into `a`.
    """

    def next_input(self, attention: Tensor, inputs: Tensor) -> Tensor:
        return gather_rows(inputs, attention.argmax(-1))


MODEL = HardPtrNet
