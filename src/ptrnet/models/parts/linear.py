"""The linear map without a bias."""

from torch import Tensor, nn

from ptrnet.kernels.linear import linear


class Linear(nn.Linear):
    """`W x`, with the parameters of `nn.Linear`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight)
