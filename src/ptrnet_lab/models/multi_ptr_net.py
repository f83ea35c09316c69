"""The Multi Ptr-Net (Chan and Sedoc 2016, 2.5): the decoder reads means of likely elements."""

import torch
from torch import Tensor

from ptrnet.models.parts.score import matmul_float32
from ptrnet_lab.models import ThresholdSettings
from ptrnet_lab.models.free_running import FreeRunningPtrNet


class MultiPtrNet(FreeRunningPtrNet):
    """The next decoder input is the mean of all `P_j` with `a_j >= threshold`.

    If no `a_j` reaches the threshold, the input is `P_k` with `k = argmax a`. Neither the threshold
    nor the argmax has a gradient, so no gradient flows through the next input into `a`. Gradients
    do flow into the learned inputs of special slots. See `FreeRunningPtrNet` for `a` and `P`.
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
