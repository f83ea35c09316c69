"""The two graphs in onnxruntime as a model of ptrnet, so that solvers and decoders serve it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ptrnet.export.graphs import ENCODER, STEP
from ptrnet.models.base import Encoded, PointerModel, full_lengths
from ptrnet.models.settings import ModelSettings


@dataclass(frozen=True)
class EncodedOnnx(Encoded):
    """What the encoder's graph returned, by the names of the step's inputs."""

    arrays: dict[str, Any]


class OnnxModel(PointerModel):
    """Runs the graphs of a folder on the CPU, with as many threads as PyTorch has.

    Args:
        folder: with both files.
        model: that they are of; only what it answers is read from it, no weight.
    """

    def __init__(self, folder: Path, model: PointerModel) -> None:
        super().__init__(model.features, model.num_specials, ModelSettings())
        self.n = model.n
        self.encoder, self.decoder = _session(folder / ENCODER), _session(folder / STEP)
        self.device_of = nn.Parameter(torch.empty(0))  # solvers ask a weight where the model is

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> EncodedOnnx:
        lengths = full_lengths(inputs) if lengths is None else lengths
        self.check_lengths(lengths)
        arrays = _run(self.encoder, {"inputs": inputs.numpy(), "lengths": lengths.numpy()})
        state = [name for name in arrays if name.startswith("state_")]
        tensors = tuple(torch.from_numpy(arrays.pop(name)) for name in state)
        return EncodedOnnx(self.num_specials + inputs.shape[1], tensors, arrays)

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
    """The outputs by their names; a graph takes those of the arrays that it has as inputs."""
    names: Sequence[str] = [output.name for output in session.get_outputs()]
    feed = {port.name: np.ascontiguousarray(arrays[port.name]) for port in session.get_inputs()}
    return dict(zip(names, session.run(names, feed), strict=True))
