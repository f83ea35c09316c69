"""The two ONNX graphs of a model: the encoder, which runs once per instance, and a decoding step.

`write_graphs` runs the model on two small batches of different sizes. The first run is recorded. An
axis whose size differs between the two runs becomes dynamic. `OnnxModel` runs the graphs as a model
of ptrnet.
"""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ptrnet.errors import ModelError
from ptrnet.models.base import Encoded, PointerModel, full_lengths
from ptrnet.models.settings import ModelSettings

ENCODER, STEP = "encoder.onnx", "step.onnx"
# The TorchScript exporter writes ONNX operator sets up to 20. `onnx` converts the graphs to 23, the
# newest set that PyTorch knows.
RECORDED_OPSET, OPSET = 20, 23
STDOUT = 1  # a file descriptor

DIMENSIONS = {
    "batch": "instances",
    "elements": "elements of the largest instance; pad the others with any finite numbers",
    "tokens": "special slots, then elements",
    "prefixes": "partial answers to each instance: 1 for greedy decoding, K for a beam of K",
    "steps": "tokens that the decoder has read before; 0 at first",
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
    """The inputs and outputs of a graph, in order."""

    inputs: list[Port]
    outputs: list[Port]


def tensors_of(encoded: Encoded) -> dict[str, Tensor]:
    """Return the tensors of an encoding by name, because graphs take and return only tensors.

    The name of a tensor joins the names of the fields that lead to it, such as `encoded_keys_0`. A
    tensor that is in several fields is returned once. These parts are left out:

    - the state, which has its own inputs and outputs
    - weights, because they belong to the graph
    - the number of tokens, although it becomes a tensor while a graph is recorded
    """
    tensors: dict[str, Tensor] = {}
    for name, tensor in _walk(replace(encoded, num_tokens=0, state=()), "encoded"):
        if not any(tensor is other for other in tensors.values()):
            tensors[name] = tensor
    return tensors


def with_tensors(encoded: Encoded, tensors: Mapping[str, Tensor]) -> Encoded:
    """Return a copy of an encoding with other tensors, and without the state.

    The other tensors have the names that `tensors_of` gives to the old ones.
    """
    replacements = {id(old): tensors[name] for name, old in tensors_of(encoded).items()}
    rebuilt: Encoded = _rebuild(replace(encoded, state=()), replacements)
    return rebuilt


def _walk(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        yield name, value
    elif is_dataclass(value):
        for f in fields(value):
            if f.init:  # fields without `init` are computed from other fields
                yield from _walk(getattr(value, f.name), f"{name}_{f.name}")
    elif isinstance(value, list | tuple):
        for k, item in enumerate(value):
            yield from _walk(item, f"{name}_{k}")


def _rebuild(value: Any, replacements: Mapping[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return replacements.get(id(value), value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        return replace(
            value, **{name: _rebuild(part, replacements) for name, part in parts.items()}
        )
    if isinstance(value, list | tuple):
        return type(value)(_rebuild(item, replacements) for item in value)
    return value


class EncoderGraph(nn.Module):
    """Calls `encode` of a model. Returns the encoding's tensors as a tuple, the state last."""

    def __init__(self, model: PointerModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        encoded = self.model.encode(inputs, lengths)
        return *tensors_of(encoded).values(), *encoded.state


class StepGraph(nn.Module):
    """Calls `step` of a model with the encoded tensors, the state and the last tokens.

    `encoded` is the encoding of any batch. `forward` replaces its tensors by the arguments.
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
    """A run of both graphs at given sizes: the modules, and the tensors by name."""

    sizes: tuple[int, ...]  # in the order of DIMENSIONS
    encoder: nn.Module
    step: nn.Module
    encoder_inputs: dict[str, Tensor]
    encoder_outputs: dict[str, Tensor]
    step_inputs: dict[str, Tensor]
    step_outputs: dict[str, Tensor]


def write_graphs(model: PointerModel, folder: Path) -> dict[str, Graph]:
    """Write both graphs into a folder. Return the inputs and outputs of each graph by file name."""
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
            ENCODER: write_graph(small.encoder, small.encoder_inputs, encoder, folder / ENCODER),
            STEP: write_graph(small.step, small.step_inputs, step, folder / STEP),
        }


def _record(model: PointerModel, batch: int, n: int, prefixes: int, steps: int) -> _Recording:
    """Encode `batch` random instances, and record a decoding step after `steps` earlier steps."""
    random = torch.Generator().manual_seed(0)
    n = model.n or n
    inputs = model.example_inputs(batch, n)
    lengths = torch.full((batch,), n)
    if model.n is None and not model.one_size:
        lengths[1:] -= 1  # so that the recording includes padding
    encoded = model.encode(inputs, lengths)
    state = tuple(part.expand(-1, prefixes, *part.shape[2:]) for part in encoded.state)
    tokens = torch.zeros(batch, prefixes, dtype=torch.int64)
    # The first and last element token that all instances have, including padded instances.
    first, last = model.num_specials, model.num_specials + max(n - 2, 0)
    for _ in range(steps):
        log_probs, state = model.step(encoded, state, tokens)
        if model.one_size:  # a problem, whose states know only allowed tokens
            tokens = log_probs.argmax(-1)
        else:
            tokens = torch.randint(first, last + 1, tokens.shape, generator=random)
    log_probs, next_state = model.step(encoded, state, tokens)
    tensors = tensors_of(encoded)
    return _Recording(
        (batch, n, model.num_tokens(n), prefixes, steps, steps + 1, 1 + 2 * steps, 3 + 2 * steps),
        # After the export, PyTorch sets this module and `model` inside it back to the mode that
        # this module had before. So call `eval` here, or `model` would be in training mode.
        EncoderGraph(model).eval(),
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
    """Return a port for each tensor of a graph.

    If the size of an axis differs between the two runs, the axis gets the name of the dimension
    with these two sizes.
    """
    pairs = zip(*(run.sizes for run in runs), strict=True)
    dimensions: dict[tuple[int, ...], str] = dict(zip(pairs, DIMENSIONS, strict=True))

    def name(key: str, sizes: tuple[int, int]) -> int | str:
        if sizes[0] != sizes[1] and sizes not in dimensions:
            raise ModelError(
                f"export: an axis of {key} had {sizes[0]} and {sizes[1]} entries; expected the "
                f"sizes of one of {', '.join(DIMENSIONS)}"
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


def write_graph(module: nn.Module, inputs: Mapping[str, Tensor], graph: Graph, path: Path) -> Graph:
    """Write a module as a graph into a file, and return the inputs and outputs of this graph.

    The file contains the weights, too. The graph has no input that the module does not use. For
    example, the step of a network may not use the tokens. Raises ModelError if the module uses an
    operator that the exporter does not know.
    """
    import onnx
    from onnx import version_converter

    ports = [*graph.inputs, *graph.outputs]
    for name, build in OPERATORS.items():
        torch.onnx.register_custom_op_symbolic(f"aten::{name}", build, RECORDED_OPSET)
    try:
        with _silent_stdout(), warnings.catch_warnings():
            # PyTorch warns about values that become constants. `agreement.py` finds wrong values.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module,
                tuple(inputs.values()),
                path,
                input_names=[port.name for port in graph.inputs],
                output_names=[port.name for port in graph.outputs],
                dynamic_axes={
                    port.name: {k: x for k, x in enumerate(port.shape) if isinstance(x, str)}
                    for port in ports
                },
                opset_version=RECORDED_OPSET,
                dynamo=False,  # takes a second; the new exporter fails for some models
                autograd_inlining=False,  # functions become the operators that they name
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise ModelError(
            f"not exported: {str(error).splitlines()[0]}; a network has to be written with "
            "operators that PyTorch's exporter knows"
        ) from None
    model = version_converter.convert_version(onnx.load(path), OPSET)
    del model.graph.value_info[:]  # unused shapes of inner values
    onnx.save(model, path)
    used = {node.name for node in model.graph.input}
    return Graph([port for port in graph.inputs if port.name in used], graph.outputs)


@contextmanager
def _silent_stdout() -> Iterator[None]:
    """Silence the C++ code of PyTorch's exporter, which prints the whole graph if it fails."""
    stdout = os.dup(STDOUT)
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123  a device, not a path of the user
            os.dup2(nowhere.fileno(), STDOUT)
        yield
    finally:
        os.dup2(stdout, STDOUT)
        os.close(stdout)


def _copysign(graph: Any, size: Any, sign: Any) -> Any:
    """Build `aten::copysign`, which the exporter lacks. 1 / x tells 0 from -0."""
    zero, one = (
        graph.op("Constant", value_t=torch.tensor(x, dtype=torch.float32)) for x in (0.0, 1.0)
    )
    below = graph.op("Less", graph.op("Div", one, sign), zero)
    size = graph.op("Abs", size)
    is_negative = graph.op("Or", graph.op("Less", sign, zero), below)
    return graph.op("Where", is_negative, graph.op("Neg", size), size)


def _hypot(graph: Any, x: Any, y: Any) -> Any:
    """Build `aten::hypot`, which the exporter lacks. Squares of scaled numbers do not overflow."""
    size = graph.op("Max", graph.op("Abs", x), graph.op("Abs", y))
    zero = graph.op("CastLike", graph.op("Constant", value_t=torch.tensor(0.0)), size)
    one = graph.op("CastLike", graph.op("Constant", value_t=torch.tensor(1.0)), size)
    scale = graph.op("Where", graph.op("Greater", size, zero), size, one)
    squares = [graph.op("Div", part, scale) for part in (x, y)]
    squares = [graph.op("Mul", part, part) for part in squares]
    return graph.op("Mul", scale, graph.op("Sqrt", graph.op("Add", *squares)))


def _take_along_dim(graph: Any, rows: Any, indices: Any, dim: Any) -> Any:
    """Build `aten::take_along_dim`, which the exporter lacks, without its broadcasting."""
    return graph.op("GatherElements", rows, indices, axis_i=int(dim.node().t("value")))


OPERATORS = {"copysign": _copysign, "hypot": _hypot, "take_along_dim": _take_along_dim}


@dataclass(frozen=True)
class EncodedOnnx(Encoded):
    """An encoding. `arrays` has the outputs of the encoder's graph except the state, by name."""

    arrays: dict[str, Any]


class OnnxModel(PointerModel):
    """Runs the graphs of a folder in onnxruntime, on the CPU with as many threads as PyTorch.

    Solvers and decoders use an `OnnxModel` like any other model. The folder has `encoder.onnx` and
    `step.onnx`. Of the exported model only the sizes are used, not the weights.
    """

    def __init__(self, folder: Path, model: PointerModel) -> None:
        super().__init__(model.features, model.num_specials, ModelSettings())
        self.n, self.exact_inputs, self.one_size = model.n, model.exact_inputs, model.one_size
        self.obeys_task = model.obeys_task
        self.num_tokens = model.num_tokens  # type: ignore[method-assign]
        self.encoder, self.decoder = _session(folder / ENCODER), _session(folder / STEP)
        self.weight = nn.Parameter(torch.empty(0))  # solvers read the device of a weight

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> EncodedOnnx:
        lengths = full_lengths(inputs) if lengths is None else lengths
        self.check_lengths(lengths)
        arrays = _run(self.encoder, {"inputs": inputs.numpy(), "lengths": lengths.numpy()})
        state = [name for name in arrays if name.startswith("state_")]
        tensors = tuple(torch.from_numpy(arrays.pop(name)) for name in state)
        return EncodedOnnx(self.num_tokens(inputs.shape[1]), tensors, arrays)

    def step(
        self, encoded: EncodedOnnx, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        earlier = {f"state_{k}": tensor.numpy() for k, tensor in enumerate(state)}
        arrays = _run(self.decoder, {**encoded.arrays, **earlier, "tokens": tokens.numpy()})
        log_probs, *after = (torch.from_numpy(array) for array in arrays.values())
        return log_probs, tuple(after)


def _session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = torch.get_num_threads(), 3
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def _run(session: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """Run a graph on named arrays. Return its outputs by name. Unused arrays are ignored."""
    names: Sequence[str] = [output.name for output in session.get_outputs()]
    feed = {port.name: np.ascontiguousarray(arrays[port.name]) for port in session.get_inputs()}
    return dict(zip(names, session.run(names, feed), strict=True))
