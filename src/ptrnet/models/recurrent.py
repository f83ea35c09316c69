"""The LSTM layer that every model is built from."""

import torch
from torch import Tensor, nn

from ptrnet.kernels import lstm
from ptrnet.kernels.lstm import Weights


class LSTM(nn.Module):
    """One layer with the parameters of `nn.LSTM`; reads padded batches, or one step at a time.

    Args:
        features: numbers in each element of the input.
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
        self, inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """See `ptrnet.kernels.lstm`; the state is zero where none is given."""
        if state is None:
            zero = inputs.new_zeros(len(inputs), self.units)
            state = (zero, zero)
        return lstm(inputs, lengths, state, self.weights)

    def step(self, inputs: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """One step of many sequences: `(..., d)` and state `(..., H)` to the next state."""
        shape = state[0].shape
        h, c = torch.lstm_cell(
            inputs.reshape(-1, inputs.shape[-1]),
            [s.reshape(-1, self.units) for s in state],
            *self.weights,
        )
        return h.view(shape), c.view(shape)
