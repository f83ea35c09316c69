"""Encoders and decoders of either cell: any number of layers, in one direction or both."""

import torch
from torch import Tensor

from ptrnet.errors import InputError
from ptrnet.indexing import gather_rows
from ptrnet.models.parts.gru import GRU
from ptrnet.models.parts.lstm import LSTM
from ptrnet.models.parts.recurrent import Recurrent, Stack, State
from ptrnet.models.settings import RecurrentSettings

CELLS: dict[str, type[LSTM] | type[GRU]] = {"lstm": LSTM, "gru": GRU}


class Bidirectional(Recurrent):
    """Half of the units read forwards and half backwards (B 3.2): `e_j = [e>_j; e<_j]`.

    So `e_j`, and the state that a decoder starts from, `[e>_n; e<_1]`, have the decoder's size.
    """

    def __init__(self, forwards: Recurrent, backwards: Recurrent) -> None:
        super().__init__()
        self.forwards, self.backwards = forwards, backwards

    def forward(
        self, inputs: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        if state is not None:
            raise ValueError("both directions start from zero")
        forward_outputs, last = self.forwards(inputs, lengths)
        reversed_outputs, first = self.backwards(reverse_sequences(inputs, lengths), lengths)
        backward_outputs = reverse_sequences(reversed_outputs, lengths)
        outputs = torch.cat([forward_outputs, backward_outputs], -1)
        return outputs, tuple(torch.cat(pair, -1) for pair in zip(last, first, strict=True))

    def step(self, inputs: Tensor, state: State) -> State:
        raise ValueError("a step has no backwards")


def reverse_sequences(rows: Tensor, lengths: Tensor) -> Tensor:
    """`(B, N, d)` sequences backwards, each within its length; padding stays where it is."""
    positions = torch.arange(rows.shape[1], device=rows.device)
    reverse = lengths[:, None] - 1 - positions
    positions = torch.where(reverse >= 0, reverse, positions)
    return gather_rows(rows, positions)


def encoder(features: int, settings: RecurrentSettings) -> Recurrent:
    """The layers of an encoder, which reads instances.

    Raises:
        InputError: both directions, of an odd number of units.
    """
    cell, units = CELLS[settings.cell], settings.hidden_size
    if settings.bidirectional and units % 2:
        raise InputError(f"hidden_size: expected an even number with bidirectional, got {units}")

    def layer(features: int) -> Recurrent:
        if settings.bidirectional:
            return Bidirectional(cell(features, units // 2), cell(features, units // 2))
        return cell(features, units)

    return _stack([layer(size) for size in _input_sizes(features, settings)])


def decoder(features: int, settings: RecurrentSettings) -> Recurrent:
    """The layers of a decoder, which reads one token at a time from the encoder's last state on."""
    cell = CELLS[settings.cell]
    return _stack([cell(size, settings.hidden_size) for size in _input_sizes(features, settings)])


def _input_sizes(features: int, settings: RecurrentSettings) -> list[int]:
    """The features of each layer's inputs."""
    return [features, *[settings.hidden_size] * (settings.layers - 1)]


def _stack(layers: list[Recurrent]) -> Recurrent:
    return layers[0] if len(layers) == 1 else Stack(layers)
