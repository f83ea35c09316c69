"""The LSTM layer."""

import torch
from torch import Tensor, nn

from ptrnet.kernels import lstm
from ptrnet.kernels.lstm import Weights, cell
from ptrnet.models.parts.recurrent import Recurrent, State, flatten_rows


class LSTM(Recurrent):
    """One layer with the parameters of `nn.LSTM`; its state is `(h, c)`.

    Args:
        features: numbers in each element of the input, d.
        units: size of the hidden state, H.
    """

    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.w_input = nn.Parameter(torch.empty(4 * units, features))
        self.w_hidden = nn.Parameter(torch.empty(4 * units, units))
        self.b_input = nn.Parameter(torch.empty(4 * units))
        self.b_hidden = nn.Parameter(torch.empty(4 * units))

    @property
    def weights(self) -> Weights:
        return Weights(self.w_input, self.w_hidden, self.b_input, self.b_hidden)

    def forward(
        self, inputs: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        if state is None:
            zero = inputs.new_zeros(inputs.shape[0], self.units)
            state = (zero, zero)
        h, c = state
        return lstm(inputs, lengths, (h, c), self.weights)

    def step(self, inputs: Tensor, state: State) -> State:
        h, c = state
        rows = flatten_rows(inputs), (flatten_rows(h), flatten_rows(c))
        next_h, next_c = cell(*rows, self.weights)
        return next_h.view(h.shape), next_c.view(c.shape)
