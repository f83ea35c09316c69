"""Recurrent layers: LSTM, GRU, stacks of layers, and bidirectional layers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ptrnet.errors import InputError
from ptrnet.kernels import is_recorded, is_transformed
from ptrnet.kernels.lstm import cell, flatten_weights, lstm, without_autocast
from ptrnet.kernels.lstm_formula import Weights
from ptrnet.masks import gather_rows
from ptrnet.models.settings import RecurrentSettings

# Tensors (..., H). The first tensor is the layer's output. The state of a stack of layers begins
# with the state of the top layer.
State = tuple[Tensor, ...]


class Recurrent(nn.Module, ABC):
    """Interface of recurrent layers: read whole padded batches, or take one step."""

    @abstractmethod
    def forward(
        self, inputs: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        """Read padded sequences `(B, N, d)`, from the given first state `(B, H)` or from zeros.

        Return outputs `(B, N, H)`, arbitrary on padding, and the state after the last element of
        each sequence.
        """

    @abstractmethod
    def step(self, inputs: Tensor, state: State) -> State:
        """The next state, for inputs `(..., d)` and state tensors `(..., H)`."""


class Stack(Recurrent):
    """Several layers. Each layer reads the outputs of the previous layer."""

    def __init__(self, layers: Sequence[Recurrent]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(
        self, inputs: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        outputs, last_states = inputs, []
        first_states = [None] * len(self.layers) if state is None else self._split(state)
        for layer, first_state in zip(self.layers, first_states, strict=True):
            # Under autocast a layer may return bfloat16. The next layer creates its first state in
            # the dtype of the rows that it reads, so convert outputs to the dtype of the inputs.
            outputs, last_state = layer(outputs.to(inputs.dtype), lengths, first_state)
            last_states.append(last_state)
        return outputs, _join(last_states)

    def step(self, inputs: Tensor, state: State) -> State:
        states = []
        for layer, layer_state in zip(self.layers, self._split(state), strict=True):
            states.append(layer.step(inputs, layer_state))  # type: ignore[operator]
            inputs = states[-1][0]
        return _join(states)

    def _split(self, state: State) -> list[State]:
        """Split a state into the states of the layers, from bottom to top."""
        size = len(state) // len(self.layers)
        return [state[k : k + size] for k in range(0, len(state), size)][::-1]


def _join(states: list[State]) -> State:
    """Join the states of layers, given from bottom to top, into one state."""
    return tuple(tensor for state in reversed(states) for tensor in state)


def flatten_rows(rows: Tensor) -> Tensor:
    """Reshape `(..., d)` to `(R, d)`, the only shape that PyTorch's cells accept."""
    return rows.reshape(-1, rows.shape[-1])


class Layer(Recurrent):
    """One recurrent layer with the same parameters as PyTorch's layer.

    It has d input features and H units.
    """

    gates: int  # gates per unit

    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.w_input = nn.Parameter(torch.empty(self.gates * units, features))
        self.w_hidden = nn.Parameter(torch.empty(self.gates * units, units))
        self.b_input = nn.Parameter(torch.empty(self.gates * units))
        self.b_hidden = nn.Parameter(torch.empty(self.gates * units))


class LSTM(Layer):
    """A layer with the parameters of `nn.LSTM`. Its state is `(h, c)`."""

    gates = 4

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


class GRU(Layer):
    """A layer with the parameters of `nn.GRU`. Its state is `(h,)`."""

    gates = 3

    @property
    def weights(self) -> list[Tensor]:
        """The weights and the biases, with gates in PyTorch's order: reset, update, new."""
        return [self.w_input, self.w_hidden, self.b_input, self.b_hidden]

    def forward(
        self, inputs: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        h = inputs.new_zeros(inputs.shape[0], self.units) if state is None else state[0]
        h = h.to(inputs.dtype)
        context, (inputs, h) = without_autocast(inputs, h)
        with context:
            if is_transformed(inputs, h, *self.weights):  # `torch.gru` has no rule for `vmap`
                states = [h]
                for t in range(inputs.shape[1]):
                    states.append(self._cell(inputs[:, t], states[-1]))
                outputs = torch.stack(states[1:], 1)
            else:
                # `training` tells cuDNN to keep what a backward pass needs.
                training = torch.is_grad_enabled() or is_recorded()
                weights = flatten_weights(self.weights) if inputs.is_cuda else self.weights
                outputs, _ = torch.gru(
                    inputs, h[None], weights, True, 1, 0.0, training, False, True
                )
        # The output of a GRU is its state, so the last state is the last output of each sequence.
        last = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, self.units)
        return outputs, (torch.where((lengths > 0)[:, None], outputs.gather(1, last)[:, 0], h),)

    def _cell(self, inputs: Tensor, h: Tensor) -> Tensor:
        """The next state by the formula."""
        by_input = nn.functional.linear(inputs, self.w_input, self.b_input).chunk(3, -1)
        by_hidden = nn.functional.linear(h, self.w_hidden, self.b_hidden).chunk(3, -1)
        reset, update = ((by_input[k] + by_hidden[k]).sigmoid() for k in range(2))
        new = torch.tanh(by_input[2] + reset * by_hidden[2])
        return new + update * (h - new)

    def step(self, inputs: Tensor, state: State) -> State:
        context, (inputs, h) = without_autocast(inputs, *state)
        if is_recorded() or is_transformed(inputs, h, *self.weights):  # ONNX has no `gru_cell`
            return (self._cell(inputs, h),)
        with context:
            return (
                torch.gru_cell(flatten_rows(inputs), flatten_rows(h), *self.weights).view_as(h),
            )


CELLS: dict[str, type[LSTM] | type[GRU]] = {"lstm": LSTM, "gru": GRU}


class Bidirectional(Recurrent):
    """Half of the units read forwards and half backwards: `e_j = [e>_j; e<_j]`.

    This is the encoder of Bahdanau, Cho and Bengio 2015, section 3.2. A decoder starts from the
    last state `[e>_n; e<_1]`. This state and each `e_j` have the size of the decoder's state.
    """

    def __init__(self, forwards: Recurrent, backwards: Recurrent) -> None:
        super().__init__()
        self.forwards, self.backwards = forwards, backwards

    def forward(
        self, inputs: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        if state is not None:
            raise ValueError("a bidirectional layer starts from zeros, expected state=None")
        forward_outputs, last = self.forwards(inputs, lengths)
        reversed_outputs, first = self.backwards(reverse_sequences(inputs, lengths), lengths)
        backward_outputs = reverse_sequences(reversed_outputs, lengths)
        outputs = torch.cat([forward_outputs, backward_outputs], -1)
        return outputs, tuple(torch.cat(pair, -1) for pair in zip(last, first, strict=True))

    def step(self, inputs: Tensor, state: State) -> State:
        raise ValueError("a bidirectional layer reads whole sequences, not single steps")


def reverse_sequences(rows: Tensor, lengths: Tensor) -> Tensor:
    """Reverse sequences `(B, N, d)` within their lengths. Padding stays in place."""
    positions = torch.arange(rows.shape[1], device=rows.device)
    reverse = lengths[:, None] - 1 - positions
    positions = torch.where(reverse >= 0, reverse, positions)
    return gather_rows(rows, positions)


def encoder(features: int, settings: RecurrentSettings) -> Recurrent:
    """Build the layers of an encoder, which reads instances.

    Raises:
        InputError: the encoder is bidirectional, but its number of units is odd.
    """
    cell, units = CELLS[settings.cell], settings.hidden_size
    if not settings.bidirectional:
        return decoder(features, settings)
    if units % 2:
        raise InputError(f"hidden_size: expected an even number with bidirectional, got {units}")
    return _stack(
        settings.layers,
        lambda k: Bidirectional(*(cell(units if k else features, units // 2) for _ in range(2))),
    )


def decoder(features: int, settings: RecurrentSettings) -> Recurrent:
    """Build the layers of a decoder, which starts from the encoder's last state."""
    cell, units = CELLS[settings.cell], settings.hidden_size
    return _stack(settings.layers, lambda k: cell(units if k else features, units))


def _stack(count: int, layer: Callable[[int], Recurrent]) -> Recurrent:
    layers = [layer(k) for k in range(count)]
    return layers[0] if count == 1 else Stack(layers)
