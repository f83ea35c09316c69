"""Encoders and decoders of the asked-for cell: any number of layers, in one direction or both."""

import torch
from torch import Tensor

from ptrnet.errors import InputError
from ptrnet.models import settings as known
from ptrnet.models.parts.gru import GRU
from ptrnet.models.parts.lstm import LSTM
from ptrnet.models.parts.recurrent import Recurrent, Stack, State

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
        ahead, last = self.forwards(inputs, lengths)
        back, first = self.backwards(turned(inputs, lengths), lengths)
        outputs = torch.cat([ahead, turned(back, lengths)], -1)
        return outputs, tuple(torch.cat(pair, -1) for pair in zip(last, first, strict=True))

    def step(self, inputs: Tensor, state: State) -> State:
        raise ValueError("a step has no backwards")


def turned(rows: Tensor, lengths: Tensor) -> Tensor:
    """`(B, T, d)` sequences backwards, each within its length; padding stays where it is."""
    places = torch.arange(rows.shape[1], device=rows.device)
    places = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    return rows.gather(1, places[..., None].expand_as(rows))


def encoder(features: int, settings: known.Recurrent) -> Recurrent:
    """What reads instances.

    Raises:
        InputError: both directions are asked for, of an odd number of units.
    """
    cell, units = CELLS[settings.cell], settings.hidden_size
    if settings.bidirectional and units % 2:
        raise InputError(f"hidden_size: expected an even number with bidirectional, got {units}")

    def layer(features: int) -> Recurrent:
        if settings.bidirectional:
            return Bidirectional(cell(features, units // 2), cell(features, units // 2))
        return cell(features, units)

    return _stacked([layer(f) for f in _widths(features, settings)])


def decoder(features: int, settings: known.Recurrent) -> Recurrent:
    """What is fed one token at a time; it starts from the encoder's last state."""
    cell = CELLS[settings.cell]
    return _stacked([cell(f, settings.hidden_size) for f in _widths(features, settings)])


def _widths(features: int, settings: known.Recurrent) -> list[int]:
    """What each layer is fed."""
    return [features, *[settings.hidden_size] * (settings.layers - 1)]


def _stacked(layers: list[Recurrent]) -> Recurrent:
    return layers[0] if len(layers) == 1 else Stack(layers)
