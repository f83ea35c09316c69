"""The folder of an export is complete and checked, or does not exist; and its manifest."""

import hashlib
import json

import pytest
import torch

import ptrnet
from ptrnet.cli import run
from ptrnet.errors import InputError, MissingExtraError, ModelError
from ptrnet.export import folder as export_folder
from tests.export.cases import build

FILES = {"encoder.onnx", "step.onnx", "manifest.json", "example.py"}


def test_the_folder_has_graphs_manifest_and_example(tmp_path):
    path = tmp_path / "out"
    manifest = ptrnet.export_onnx(build("ptr-net"), path, instances=20)
    assert {file.name for file in path.iterdir()} == FILES
    assert manifest == json.loads((path / "manifest.json").read_text())
    assert set(manifest["files"]) == FILES - {"manifest.json"}
    for name, facts in manifest["files"].items():
        content = (path / name).read_bytes()
        assert facts == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert manifest["checked"]["same_answers"] == manifest["checked"]["instances"] == 20
    assert manifest["tokens"] == {**manifest["tokens"], "end": 0, "first_element": 1}
    assert manifest["constraint"]["kind"] == "subset" and manifest["weights"] == "float32"
    assert manifest["model"]["name"] == "ptr-net"
    assert manifest["ptrnet"] == ptrnet.__version__ and manifest["opset"] == 23
    outputs = {port["name"]: port for port in manifest["encoder"]["outputs"]}
    for port in manifest["step"]["inputs"]:
        if port["name"].startswith("encoded"):
            assert port == outputs[port["name"]]
    assert manifest["step"]["outputs"][0]["shape"] == ["batch", "prefixes", "tokens"]


def test_an_empty_folder_is_filled(tmp_path):
    ptrnet.export_onnx(build("ptr-net"), tmp_path, instances=3)
    assert {file.name for file in tmp_path.iterdir()} == FILES


def test_a_link_to_an_empty_folder_is_filled(tmp_path):
    """Once, nothing was written, without a message."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    ptrnet.export_onnx(build("ptr-net"), tmp_path / "link", instances=3)
    assert {file.name for file in (tmp_path / "real").iterdir()} == FILES


def test_two_exports_to_one_folder_do_not_mix(tmp_path, monkeypatch):
    """Once, such a folder was reported as written, with weights of the other export."""
    path, write = tmp_path / "out", export_folder.write_graphs

    def write_and_let_others(model, folder):
        (path / "other").mkdir(parents=True)
        return write(model, folder)

    monkeypatch.setattr(export_folder, "write_graphs", write_and_let_others)
    with pytest.raises(InputError, match=r"out: another process wrote it in the meantime$"):
        ptrnet.export_onnx(build("ptr-net"), path, instances=3)
    assert [file.name for file in tmp_path.rglob("*")] == ["out", "other"]


def test_graphs_with_wrong_answers_are_not_written(tmp_path, monkeypatch):
    """The graphs belong to another model. The export compares them with the given one."""
    other, write = build("ptr-net", scale=3.0), export_folder.write_graphs
    monkeypatch.setattr(export_folder, "write_graphs", lambda model, path: write(other.model, path))
    with pytest.raises(ModelError, match=r"not exported: in onnxruntime .* PyTorch's"):
        ptrnet.export_onnx(build("ptr-net"), tmp_path / "out", instances=20)
    assert not list(tmp_path.iterdir())


def outcome(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def test_ptrnet_export_writes_and_reports_the_folder(tmp_path, capsys):
    path = tmp_path / "sort"
    code, out, err = outcome(capsys, "export", "sort", path, "--instances", 20, "--quantize")
    assert code == 0 and not err, err
    files, checked, rounded, accuracy = out.splitlines()
    assert files.startswith(f"{path}: encoder.onnx 0.3") and "step.onnx 0.1" in files
    assert checked.startswith("checked on 20 instances: the same answers as PyTorch's")
    assert rounded.startswith("int8 and float32 give equal answers to ")
    assert accuracy.split()[:3] == ["accuracy", "float32", "1.000"] and ", int8 " in accuracy
    manifest = json.loads((path / "manifest.json").read_text())
    metric = manifest["quantization"]["metrics"]["accuracy"]
    assert manifest["weights"] == "int8" and metric["float32"]["count"] == 20
    assert 0.5 < metric["int8"]["value"] <= 1
    count = sum(parameter.numel() for parameter in ptrnet.load("sort").model.parameters())
    assert sum(facts["bytes"] for facts in manifest["files"].values()) < 2 * count


def test_a_users_own_task_is_rounded_without_labels(tmp_path):
    solver = build("ptr-net", "custom", {"center": (5.0,), "spread": (2.0,), "kind": "subset"})
    manifest = ptrnet.export_onnx(solver, tmp_path, weights="int8", instances=20)
    quantization = manifest["quantization"]
    assert quantization["metrics"] == {} and 0 <= quantization["equal_answers"] <= 1
    assert manifest["inputs"]["scaling"]["kind"] == "standardize"
    assert manifest["inputs"]["scaling"]["center"] == [5.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hul", "out"), "unknown model 'hul'; did you mean 'hull'?"),
        (("hull", "full"), "full: expected a new or an empty folder: is not empty"),
        (("hull", "full/a"), "full/a: expected a new or an empty folder: Not a directory"),
        (("hull", "no/out"), "no/out: cannot be written: No such file or directory"),
    ],
)
def test_refused_in_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    code, out, err = outcome(capsys, "export", *arguments)
    assert code == 2 and not out and err.count("\n") == 1 and message in err, err
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_a_missing_extra_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ptrnet.errors.find_spec", lambda package: None)
    for command in (("export", "sort", tmp_path / "out"), ("bench", "export")):
        code, out, err = outcome(capsys, *command)
        assert (code, out) == (2, "") and err.count("\n") == 1
        assert 'export needs the extra "export": pip install "ptrnet[export]"' in err
    with pytest.raises(MissingExtraError):
        ptrnet.export_onnx(build("ptr-net"), tmp_path / "out")


def test_arguments_out_of_range_are_refused(tmp_path):
    solver = build("ptr-net")
    with pytest.raises(InputError, match="unknown weights 'int4'"):
        ptrnet.export_onnx(solver, tmp_path / "out", weights="int4")
    with pytest.raises(InputError, match="instances: expected a whole number of 1 or more, got 0"):
        ptrnet.export_onnx(solver, tmp_path / "out", instances=0)
    with pytest.raises(InputError, match="seed: expected a whole number of 0 or more, got -1"):
        ptrnet.export_onnx(solver, tmp_path / "out", seed=-1)


def test_a_network_that_bakes_in_the_size_of_a_batch_is_not_exported(tmp_path):
    """Such a network uses `len(x)`. Once, this raised a traceback of onnxruntime."""
    solver = build("ptr-net")
    kind = type(solver.model)

    class Baked(kind):
        def encode(self, inputs, lengths=None):
            return kind.encode(self, inputs + torch.zeros(len(inputs), 1, 2), lengths)

    solver.model.__class__ = Baked
    with pytest.raises(
        ModelError, match=r"not exported: onnxruntime fails: .*sizes with which they were recorded"
    ):
        ptrnet.export_onnx(solver, tmp_path / "out", instances=4)
    assert not (tmp_path / "out").exists()


def test_a_network_of_operators_without_a_counterpart_is_not_exported(tmp_path, capfd):
    """Once, this printed the whole graph and a traceback."""
    solver = build("ptr-net")
    kind = type(solver.model)

    class Transposed(kind):
        def encode(self, inputs, lengths=None):
            return kind.encode(self, inputs.mT.mT, lengths)

    solver.model.__class__ = Transposed
    message = (
        r"^not exported: Exporting the operator 'aten::mT' .*operators that PyTorch's exporter"
    )
    with pytest.raises(ModelError, match=message):
        ptrnet.export_onnx(solver, tmp_path / "out", instances=4)
    assert not (tmp_path / "out").exists() and capfd.readouterr() == ("", "")


def test_arguments_in_the_wrong_order_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"expected a model as ptrnet\.load gives it, got 'out'"):
        ptrnet.export_onnx("out", build("ptr-net"))
