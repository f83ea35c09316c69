"""Two ONNX graphs of a model: what is computed once for an instance, and a step of the decoder.

They are recorded by running the model on a small batch. What depends on sizes must not be a
constant of the recording, so that it is run at two sizes, and the axes that differ are dynamic.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ptrnet.errors import ModelError
from ptrnet.export.tensors import tensors_of, with_tensors
from ptrnet.models.base import PointerModel

ENCODER, STEP = "encoder.onnx", "step.onnx"
RECORDED_OPSET = 20  # the newest that the exporter writes
OPSET = 23  # the newest that this version of PyTorch knows

DIMENSIONS = {
    "batch": "instances",
    "elements": "of the longest instance; of the others padding, any finite numbers, follows",
    "tokens": "special slots, then elements",
    "prefixes": "beginnings of an answer, of each instance: 1 for greedy decoding",
    "steps": "tokens that the decoder has been fed before; 0 at first",
    "next_steps": "steps + 1",
    "edges": "1 + 2 steps",
    "next_edges": "3 + 2 steps",
}


@dataclass(frozen=True)
class Port:
    """An input or output of a graph."""

    name: str
    dtype: str  # NumPy's name
    shape: list[int | str]  # sizes, and names of DIMENSIONS


@dataclass(frozen=True)
class Graph:
    """What goes into a graph, and what comes out of it, in their order."""

    inputs: list[Port]
    outputs: list[Port]


class EncoderGraph(nn.Module):
    """`encode` of a model: from inputs and lengths to a tuple of tensors, the state last."""

    def __init__(self, model: PointerModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        encoded = self.model.encode(inputs, lengths)
        return *tensors_of(encoded).values(), *encoded.state


class StepGraph(nn.Module):
    """`step` of a model: the encoded tensors, the state and the last tokens, all of them tensors.

    `encoded` is of any batch: the object that the tensors are put into.
    """

    def __init__(self, model: PointerModel, encoded: Any) -> None:
        super().__init__()
        self.model, self.encoded = model, encoded

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        *rest, tokens = tensors
        names = list(tensors_of(self.encoded))
        encoded = with_tensors(self.encoded, dict(zip(names, rest, strict=False)))
        log_probs, state = self.model.step(encoded, tuple(rest[len(names) :]), tokens)
        return log_probs, *state


class _Recording(NamedTuple):
    """A run of both graphs at some sizes: their modules, and the tensors by name."""

    sizes: tuple[int, ...]  # of DIMENSIONS
    encoder: nn.Module
    step: nn.Module
    encoder_inputs: dict[str, Tensor]
    encoder_outputs: dict[str, Tensor]
    step_inputs: dict[str, Tensor]
    step_outputs: dict[str, Tensor]


def write_graphs(model: PointerModel, folder: Path) -> dict[str, Graph]:
    """Writes the two files into a folder; returns what goes in and out, by the file's name."""
    with torch.no_grad():
        runs = [_record(model, 3, 7, 2, 2), _record(model, 5, 11, 4, 3)]
        small, large = runs
        encoder = Graph(
            _ports(runs, small.encoder_inputs, large.encoder_inputs),
            _ports(runs, small.encoder_outputs, large.encoder_outputs),
        )
        step = Graph(
            _ports(runs, small.step_inputs, large.step_inputs),
            _ports(runs, small.step_outputs, large.step_outputs),
        )
        return {
            ENCODER: _write(small.encoder, small.encoder_inputs, encoder, folder / ENCODER),
            STEP: _write(small.step, small.step_inputs, step, folder / STEP),
        }


def _record(model: PointerModel, batch: int, n: int, prefixes: int, steps: int) -> _Recording:
    """Runs a model on `batch` random instances, and a step after `steps` tokens of prefixes."""
    random = torch.Generator().manual_seed(0)
    n = model.n or n
    inputs = torch.rand(batch, n, model.features, generator=random, dtype=torch.float32)
    lengths = torch.full((batch,), n)
    if model.n is None:
        lengths[1:] -= 1  # padding is recorded, too
    encoded = model.encode(inputs, lengths)
    state = tuple(part.expand(-1, prefixes, *part.shape[2:]) for part in encoded.state)
    tokens = torch.zeros(batch, prefixes, dtype=torch.int64)
    first, last = model.num_specials, model.num_specials + max(n - 2, 0)
    for _ in range(steps):
        _, state = model.step(encoded, state, tokens)
        tokens = torch.randint(first, last + 1, tokens.shape, generator=random)
    log_probs, next_state = model.step(encoded, state, tokens)
    tensors = tensors_of(encoded)
    return _Recording(
        (batch, n, first + n, prefixes, steps, steps + 1, 1 + 2 * steps, 3 + 2 * steps),
        EncoderGraph(model).eval(),  # the exporter gives a module, and so the model, its mode back
        StepGraph(model, encoded).eval(),
        {"inputs": inputs, "lengths": lengths},
        {**tensors, **_numbered("state", encoded.state)},
        {**tensors, **_numbered("state", state), "tokens": tokens},
        {"log_probs": log_probs, **_numbered("next_state", next_state)},
    )


def _numbered(name: str, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    return {f"{name}_{k}": tensor for k, tensor in enumerate(tensors)}


def _ports(
    runs: Sequence[_Recording], small: Mapping[str, Tensor], large: Mapping[str, Tensor]
) -> list[Port]:
    """The tensors of a graph; an axis is named by the dimension whose sizes it had in both runs."""
    pairs = zip(*(run.sizes for run in runs), strict=True)
    dimensions: dict[tuple[int, ...], str] = dict(zip(pairs, DIMENSIONS, strict=True))

    def name(key: str, sizes: tuple[int, int]) -> int | str:
        if sizes[0] != sizes[1] and sizes not in dimensions:
            raise ModelError(
                f"export: an axis of {key} had {sizes[0]} and {sizes[1]} entries, which is none of "
                f"{', '.join(DIMENSIONS)}"
            )
        return sizes[0] if sizes[0] == sizes[1] else dimensions[sizes]

    return [
        Port(
            key,
            str(tensor.dtype).removeprefix("torch."),
            [name(key, sizes) for sizes in zip(tensor.shape, large[key].shape, strict=True)],
        )
        for key, tensor in small.items()
    ]


def _write(module: nn.Module, inputs: Mapping[str, Tensor], graph: Graph, path: Path) -> Graph:
    """Records a graph as a file of its own, weights included; returns it as it is in the file.

    An input that a model does not use, as free-running ones the tokens, is none of the file's.
    """
    import onnx
    from onnx import version_converter

    try:
        _export(module, inputs, graph, path)
    except torch.onnx.errors.OnnxExporterError as error:
        raise ModelError(
            f"not exported: {str(error).splitlines()[0]}; a network has to be written with "
            "operators that PyTorch's exporter knows"
        ) from None
    model = version_converter.convert_version(onnx.load(path), OPSET)
    del model.graph.value_info[:]  # shapes that the converter has inferred
    onnx.save(model, path)
    used = {node.name for node in model.graph.input}
    return Graph([port for port in graph.inputs if port.name in used], graph.outputs)


def _export(module: nn.Module, inputs: Mapping[str, Tensor], graph: Graph, path: Path) -> None:
    """Records what the module does with the inputs."""
    ports = [*graph.inputs, *graph.outputs]
    torch.onnx.register_custom_op_symbolic("aten::copysign", _copysign, RECORDED_OPSET)
    with _silent_exporter(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is constant: the answers are compared afterwards
        torch.onnx.export(
            module,
            tuple(inputs.values()),
            path,
            input_names=[port.name for port in graph.inputs],
            output_names=[port.name for port in graph.outputs],
            dynamic_axes={
                port.name: {k: size for k, size in enumerate(port.shape) if isinstance(size, str)}
                for port in ports
            },
            opset_version=RECORDED_OPSET,
            dynamo=False,  # records every model, in a second; the other exporter only some
        )


@contextmanager
def _silent_exporter() -> Iterator[None]:
    """Where it fails, PyTorch's exporter prints the whole graph, whatever its switch says."""
    log, torch._C._jit_onnx_log = torch._C._jit_onnx_log, lambda *_: None
    try:
        yield
    finally:
        torch._C._jit_onnx_log = log


def _copysign(graph: Any, size: Any, sign: Any) -> Any:
    """`aten::copysign`, which the exporter lacks; the sign of a zero shows in its reciprocal."""
    zero, one = (
        graph.op("Constant", value_t=torch.tensor(x, dtype=torch.float32)) for x in (0.0, 1.0)
    )
    below = graph.op("Less", graph.op("Div", one, sign), zero)
    size = graph.op("Abs", size)
    is_negative = graph.op("Or", graph.op("Less", sign, zero), below)
    return graph.op("Where", is_negative, graph.op("Neg", size), size)
