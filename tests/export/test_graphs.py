"""The graphs of every model compute what the model computes, for instances of any size."""

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from ptrnet import models
from ptrnet.decoding import Beam
from ptrnet.export.agreement import compare, fresh_instances
from ptrnet.export.graphs import (
    DIMENSIONS,
    ENCODER,
    STEP,
    Graph,
    OnnxModel,
    Port,
    write_graph,
    write_graphs,
)
from ptrnet.export.quantize import quantize_graphs
from ptrnet.solver import Solver
from tests.export.cases import SETTINGS, build, label

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
RECORDED = 7  # elements of the instances that a graph is recorded with
LARGEST = 12  # elements of those on which answers are compared


class Exported(NamedTuple):
    solver: Solver
    folder: Path
    graphs: dict[str, Graph]
    model: OnnxModel


def export(solver, folder):
    graphs = write_graphs(solver.model, folder)
    return Exported(solver, folder, graphs, OnnxModel(folder, solver.model))


@pytest.fixture(scope="module", params=SETTINGS, ids=label)
def exported(request, tmp_path_factory):
    """Every model, exported once for all tests."""
    return export(build(*request.param), tmp_path_factory.mktemp("graphs"))


def test_every_model_is_covered():
    assert {model for model, *_ in SETTINGS} == set(models.names())


def test_answers_and_log_probabilities_are_pytorchs(exported):
    solver, _, _, model = exported
    instances = fresh_instances(solver, 400, seed=1)
    if solver.model.n is None:
        instances = [x for x in instances if len(x) <= LARGEST and len(x) != RECORDED]
        assert len({len(instance) for instance in instances}) > 8
    instances = instances[:60]
    agreement = compare(solver.model, model, solver.task, instances)
    assert agreement.same_answers + agreement.ties == agreement.instances == 60
    assert agreement.ties <= 1  # decided by rounding
    limit = max(1e-4, 4 * agreement.float32_error)  # PyTorch's own error, against float64
    assert agreement.log_prob_error <= limit and agreement.float32_error < 1e-3


def test_prefixes_of_a_beam_are_served(exported):
    """Log-probabilities of 3 prefixes at a time, against PyTorch's of each alone."""
    solver, _, _, model = exported
    n = solver.model.n or 5
    inputs, lengths = torch.rand(2, n, solver.task.facts.num_features), torch.full((2,), n)
    tokens = torch.randint(1, n, (2, 3, 3)) + solver.model.num_specials - 1
    encoded = model.encode(inputs, lengths)
    state = tuple(part.expand(-1, 3, *part.shape[2:]) for part in encoded.state)
    last = torch.zeros_like(tokens[..., 0])
    for step in range(3):
        log_probs, state = model.step(encoded, state, last)
        last = tokens[..., step]
        for k in range(3):
            with torch.no_grad():
                expected = solver.model.log_probs(inputs, lengths, tokens[:, k])[:, step]
            torch.testing.assert_close(log_probs[:, k], expected, rtol=1e-4, atol=1e-4)


def test_declared_inputs_and_outputs_equal_those_of_the_graphs(exported):
    """Names, types and axes; the exporter leaves some axes without a number."""
    _, _, graphs, model = exported
    types = {"float32": "tensor(float)", "int64": "tensor(int64)", "bool": "tensor(bool)"}
    for file, session in ((ENCODER, model.encoder), (STEP, model.decoder)):
        for ports, nodes in (
            (graphs[file].inputs, session.get_inputs()),
            (graphs[file].outputs, session.get_outputs()),
        ):
            assert [port.name for port in ports] == [node.name for node in nodes]
            for port, node in zip(ports, nodes, strict=True):
                assert types[port.dtype] == node.type and len(port.shape) == len(node.shape)
                for size, dimension in zip(port.shape, node.shape, strict=True):
                    is_open = isinstance(size, int) and isinstance(dimension, str)
                    assert is_open or size == dimension
                    assert isinstance(size, int) or size in DIMENSIONS


def test_exporting_does_not_change_the_model(tmp_path):
    """The exporter once put models into training mode, in which some compute something else."""
    solver = build("ptr-net")
    before = {key: value.clone() for key, value in solver.model.state_dict().items()}
    write_graphs(solver.model, tmp_path)
    assert not any(module.training for module in solver.model.modules())
    assert all(parameter.requires_grad for parameter in solver.model.parameters())
    assert all(torch.equal(before[k], v) for k, v in solver.model.state_dict().items())


def test_graphs_serve_searches(tmp_path):
    solver = build("ptr-net")
    model = export(solver, tmp_path).model
    inputs, lengths = torch.rand(9, 8, 2), torch.arange(9).clamp(min=1, max=8)
    for decoder in (Beam(1), Beam(5)):
        expected, actual = (
            decoder.decode(m, inputs, lengths, lengths) for m in (solver.model, model)
        )
        assert torch.equal(actual.tokens, expected.tokens)
        torch.testing.assert_close(actual.log_probs, expected.log_probs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sign", [1.0, -1.0, 0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45])
def test_copysign_reads_the_sign_of_zero(sign, tmp_path):
    """The operator that the exporter lacks, against NumPy's."""

    class Copysign(torch.nn.Module):
        def forward(self, x, sign):
            return torch.copysign(x, sign)

    path = tmp_path / "copysign.onnx"
    ports = [Port("x", "float32", [3]), Port("sign", "float32", [3])]
    inputs = {"x": torch.tensor([2.0, -3.0, 1e-45]), "sign": torch.full((3,), sign)}
    write_graph(Copysign().eval(), inputs, Graph(ports, [Port("y", "float32", [3])]), path)
    (y,) = onnxruntime.InferenceSession(path).run(
        None, {key: value.numpy() for key, value in inputs.items()}
    )
    expected = np.copysign(inputs["x"].numpy(), inputs["sign"].numpy())
    assert np.array_equal(y, expected)


def test_quantized_graphs_give_answers(exported, tmp_path):
    """Products with a vector once had no int8 kernel."""
    solver, folder, _, whole = exported
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    quantize_graphs(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {ENCODER, STEP}
    for name in (ENCODER, STEP):  # signed weights answered wrongly on a processor without VNNI
        types = {tensor.data_type for tensor in onnx.load(tmp_path / name).graph.initializer}
        assert onnx.TensorProto.INT8 not in types
    n = solver.model.n or 5
    batch = torch.rand(3, n, solver.task.facts.num_features), torch.full((3,), n)
    tokens = torch.arange(3 * 2).view(3, 2) % n + solver.model.num_specials
    expected, actual = (
        model.log_probs(*batch, tokens).exp()
        for model in (whole, OnnxModel(tmp_path, solver.model))
    )
    error = (actual - expected).abs().max()
    assert 0 < error < 0.5  # rounded, and not something else
