"""The GRU layer (Cho et al. 2014, in PyTorch's form)."""

import torch
from torch import Tensor, nn

from ptrnet.kernels.cudnn import flatten_weights, without_autocast
from ptrnet.kernels.eager import is_recorded, is_transformed
from ptrnet.masks import length_mask
from ptrnet.models.parts.recurrent import Recurrent, State, flatten_rows


class GRU(Recurrent):
    """One layer with the parameters of `nn.GRU`; its state is `(h,)`.

    Args:
        features: numbers in each element of the input, d.
        units: size of the hidden state, H.
    """

    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.w_input = nn.Parameter(torch.empty(3 * units, features))
        self.w_hidden = nn.Parameter(torch.empty(3 * units, units))
        self.b_input = nn.Parameter(torch.empty(3 * units))
        self.b_hidden = nn.Parameter(torch.empty(3 * units))

    @property
    def weights(self) -> list[Tensor]:
        """In PyTorch's order of gates: reset, update, new."""
        return [self.w_input, self.w_hidden, self.b_input, self.b_hidden]

    def forward(
        self, inputs: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        h = inputs.new_zeros(inputs.shape[0], self.units) if state is None else state[0]
        h = h.to(inputs.dtype)
        if is_transformed(inputs, h, *self.weights):  # `torch.gru` has no rule for `vmap`
            return self._step_by_step(inputs, lengths, h)
        training = torch.is_grad_enabled() or is_recorded()  # makes cuDNN save what backward needs
        context, (inputs, h) = without_autocast(inputs, h)
        weights = flatten_weights(self.weights) if inputs.is_cuda else self.weights
        with context:
            outputs, _ = torch.gru(inputs, h[None], weights, True, 1, 0.0, training, False, True)
        # A GRU's output is its state, so the last state is the output at each sequence's end.
        last = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, self.units)
        return outputs, (torch.where((lengths > 0)[:, None], outputs.gather(1, last)[:, 0], h),)

    def _plain_cell(self, inputs: Tensor, h: Tensor) -> Tensor:
        by_input = nn.functional.linear(inputs, self.w_input, self.b_input).chunk(3, -1)
        by_hidden = nn.functional.linear(h, self.w_hidden, self.b_hidden).chunk(3, -1)
        reset, update = ((by_input[k] + by_hidden[k]).sigmoid() for k in range(2))
        new = torch.tanh(by_input[2] + reset * by_hidden[2])
        return new + update * (h - new)

    def _step_by_step(self, inputs: Tensor, lengths: Tensor, h: Tensor) -> tuple[Tensor, State]:
        mask = length_mask(lengths, inputs.shape[1])[..., None]
        outputs = [inputs.new_zeros(inputs.shape[0], 0, self.units)]
        for t in range(inputs.shape[1]):
            h = torch.where(mask[:, t], self._plain_cell(inputs[:, t], h), h)
            outputs.append(h[:, None])
        return torch.cat(outputs, 1), (h,)

    def step(self, inputs: Tensor, state: State) -> State:
        (h,) = state
        context, (inputs, h) = without_autocast(inputs, h)
        if is_recorded() or is_transformed(inputs, h, *self.weights):  # ONNX has no `gru_cell`
            return (self._plain_cell(inputs, h),)
        rows = flatten_rows(inputs), flatten_rows(h)
        with context:
            return (torch.gru_cell(*rows, *self.weights).view(h.shape),)
