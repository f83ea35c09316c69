"""The shipped models of problems answer in onnxruntime as they do in PyTorch."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import tasks
from ptrnet.errors import InputError
from ptrnet.export.graphs import OnnxModel
from ptrnet.problems import names
from ptrnet.solver import Solver


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Export each shipped model once."""
    folders = {}

    def export(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp("onnx") / name
            ptrnet.export_onnx(ptrnet.load(name), folders[name], instances=2)
        return ptrnet.load(name), folders[name]

    return export


def drawn(task):
    """Instances of several sizes and kinds. Rounded distances need the shortest ways back."""
    instances = [task.sample(np.random.default_rng(n), 1, n)[0] for n in (2, 5, 8)]
    if "rounded" in task.problem.optional:
        rounded = task.sample(np.random.default_rng(1), 1, 9)[0]
        rounded[:, :2] *= 8
        rounded[:, -1] = 1
        if task.name == "orienteering":
            rounded[:, 3] *= 8
        instances.append(rounded)
    return instances


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("decoder", [ptrnet.Greedy(), ptrnet.Beam(3)])
def test_graphs_answer_as_the_model(name, decoder, exported):
    solver, folder = exported(name)
    with torch.no_grad():
        graphs = Solver(OnnxModel(folder, solver.model), solver.task)
    for inputs in drawn(solver.task):
        expected = solver.answer(inputs, decoder, improve=False)
        actual = graphs.answer(inputs, decoder, improve=False)
        np.testing.assert_array_equal(actual.outputs, expected.outputs)
        assert actual.log_prob == pytest.approx(expected.log_prob, abs=1e-4)


@pytest.mark.parametrize("name", names())
def test_the_example_answers_a_line_of_json(name, exported, tmp_path):
    solver, folder = exported(name)
    inputs = drawn(solver.task)[-1]
    (tmp_path / "one.jsonl").write_text(json.dumps(solver.task.problem.to_fields(inputs)) + "\n")
    command = [sys.executable, folder / "example.py", tmp_path / "one.jsonl"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert json.loads(printed) == solver.solve(inputs, improve=False).tolist()


@pytest.mark.parametrize("text", ["NAME : one", "[1, 2]", '{"demand": 3}', ""])
def test_the_example_says_which_file_it_takes(exported, tmp_path, text):
    _, folder = exported("cvrp")
    (tmp_path / "one.vrp").write_text(f"{text}\n")
    command = [sys.executable, folder / "example.py", tmp_path / "one.vrp"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "expected a file with an instance as a line of JSON" in done.stderr


def test_a_step_of_routes_makes_no_array(monkeypatch):
    """A GPU would wait for each array of NumPy's."""
    solver = ptrnet.load("cvrp")
    inputs = torch.from_numpy(solver.task.sample(np.random.default_rng(0), 2, 9))

    def fail(*_):
        raise AssertionError("an array of NumPy's")

    with torch.no_grad(), monkeypatch.context() as patched:
        patched.setattr(torch.Tensor, "numpy", fail)
        patched.setattr(torch.Tensor, "__array__", fail)
        patched.setattr(torch, "from_numpy", fail)
        encoded = solver.model.encode(inputs)
        log_probs, state = solver.model.step(encoded, encoded.state, torch.zeros(2, 1).long())
        solver.model.step(encoded, state, log_probs.argmax(-1))


def test_a_problem_written_in_numpy_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks.kind("knapsack"), "array_api", False)
    solver = ptrnet.load("knapsack")
    with pytest.raises(InputError, match="export: the states of knapsack are computed in NumPy"):
        ptrnet.export_onnx(solver, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()
