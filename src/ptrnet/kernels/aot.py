"""`python -m ptrnet.kernels.aot` compiles what a training of recurrent networks needs on a CPU.

`runtime.compile_ahead_of_time` starts it beside the first training on a machine. What is compiled
is kept on the disk, where the training finds it: each kernel here takes a batch, of such types as a
training and the decoding at its end have.
"""

import torch

from ptrnet.kernels import additive_scores, lstm
from ptrnet.kernels.additive import cpu
from ptrnet.kernels.linear import linear
from ptrnet.kernels.lstm import Weights
from ptrnet.kernels.packed import can_multiply
from ptrnet.kernels.pointer_step import PointerStep, can_serve

BATCH, N, FEATURES, UNITS = 128, 50, 2, 256


def compile_training() -> None:
    """The layer, the scores and their gradients, in the type in which networks are trained here."""
    low_precision = can_multiply(torch.bfloat16)
    weights, inputs, lengths, state = _layer(requires_grad=True)
    v, matrix = _drawn(UNITS, requires_grad=True), _drawn(UNITS, UNITS, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=low_precision):
        states, (h, c) = lstm(inputs, lengths, state, weights)
        scores = additive_scores(linear(states, matrix), linear(states[:, :7], matrix), v, lengths)
    (scores.sum() + h.sum() + c.sum()).backward()  # type: ignore[no-untyped-call]


@torch.no_grad()
def compile_decoding() -> None:
    """The encoder, a step of the decoder, and all steps of a known answer."""
    weights, inputs, lengths, state = _layer()
    v, matrix = _drawn(UNITS), _drawn(UNITS, UNITS)
    states, (h, c) = lstm(inputs, lengths, state, weights)
    keys = linear(states, matrix)
    additive_scores(keys, keys[:, :7], v, lengths)
    prepared = cpu.prepared_scores(keys, v, lengths)
    prepared(h[:, None])
    if can_serve(FEATURES, UNITS):
        PointerStep(weights, matrix, prepared)(inputs[:, :1], (h[:, None], c[:, None]))


def _layer(
    requires_grad: bool = False,
) -> tuple[Weights, torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """Weights of a layer, inputs, their lengths and the state before them."""
    shapes = (4 * UNITS, FEATURES), (4 * UNITS, UNITS), (4 * UNITS,), (4 * UNITS,)
    weights = Weights(*(_drawn(*shape, requires_grad=requires_grad) for shape in shapes))
    state = torch.zeros(BATCH, UNITS), torch.zeros(BATCH, UNITS)
    return weights, _drawn(BATCH, N, FEATURES), torch.full((BATCH,), N), state


def _drawn(*shape: int, requires_grad: bool = False) -> torch.Tensor:
    return (0.1 * torch.rand(shape)).requires_grad_(requires_grad)


if __name__ == "__main__":
    torch.set_num_threads(1)  # the other ones are the training's
    compile_training()
    compile_decoding()
