"""The interface of a recurrent layer, and a stack of layers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

# Tensors (..., H). The first is the layer's output; in a stack the top layer's state comes first.
State = tuple[Tensor, ...]


class Recurrent(nn.Module, ABC):
    """Reads padded batches, or one step of many sequences at a time."""

    @abstractmethod
    def forward(
        self, inputs: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        """Reads each `(B, N, d)` sequence up to its length `(B,)`.

        Returns outputs `(B, N, H)`, arbitrary after a sequence's end, and the state, each tensor
        `(B, H)`, after its last element. A state of None is zero.
        """

    @abstractmethod
    def step(self, inputs: Tensor, state: State) -> State:
        """The next state of many sequences: inputs `(..., d)`, state tensors `(..., H)`."""


class Stack(Recurrent):
    """Layers, each of which reads the outputs of the one before."""

    def __init__(self, layers: Sequence[Recurrent]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(
        self, inputs: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        outputs, last_states = inputs, []
        first_states = [None] * len(self.layers) if state is None else self._split(state)
        for layer, first_state in zip(self.layers, first_states, strict=True):
            # In the type of the inputs, so that the next layer does not round them once more.
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
        """The state of each layer, the bottom one first."""
        size = len(state) // len(self.layers)
        return [state[k : k + size] for k in range(0, len(state), size)][::-1]


def _join(states: list[State]) -> State:
    """One state of the layers' states, which come with the bottom one first."""
    return tuple(tensor for state in reversed(states) for tensor in state)


def flatten_rows(rows: Tensor) -> Tensor:
    """`(..., d)` as `(R, d)`, the only shape that PyTorch's cells take."""
    return rows.reshape(-1, rows.shape[-1])
