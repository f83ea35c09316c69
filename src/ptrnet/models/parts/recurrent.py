"""What every recurrent layer offers, and layers on top of each other."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

# Tensors (..., H). The first is what the layer puts out; a stack's top layer stands first.
State = tuple[Tensor, ...]


class Recurrent(nn.Module, ABC):
    """Reads padded batches, or one step of many sequences at a time."""

    @abstractmethod
    def forward(
        self, inputs: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        """Reads each `(B, T, d)` sequence up to its length `(B,)`.

        Returns outputs `(B, T, H)`, arbitrary behind a sequence's end, and the state, each tensor
        `(B, H)`, after its last element. It starts from zero where no state is given.
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
        outputs, states = inputs, []
        given = [None] * len(self.layers) if state is None else self._of_layers(state)
        for layer, own in zip(self.layers, given, strict=True):
            # In the type of the inputs: what is fed is not rounded twice.
            outputs, last = layer(outputs.to(inputs.dtype), lengths, own)
            states.append(last)
        return outputs, _top_first(states)

    def step(self, inputs: Tensor, state: State) -> State:
        states = []
        for layer, own in zip(self.layers, self._of_layers(state), strict=True):
            states.append(layer.step(inputs, own))  # type: ignore[operator]
            inputs = states[-1][0]
        return _top_first(states)

    def _of_layers(self, state: State) -> list[State]:
        """The state of each layer, the bottom one first."""
        each = len(state) // len(self.layers)
        return [state[k : k + each] for k in range(0, len(state), each)][::-1]


def _top_first(states: list[State]) -> State:
    return tuple(tensor for state in reversed(states) for tensor in state)


def flat(rows: Tensor) -> Tensor:
    """`(..., d)` as `(R, d)`: what PyTorch's cells take."""
    return rows.reshape(-1, rows.shape[-1])
