"""Model folders: round trips, and hostile or broken files."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ptrnet import model_folder
from ptrnet.errors import InputError, ModelError


@pytest.fixture
def checked(small, tmp_path):
    """A model's folder as ptrnet writes it, with the checksum of its weights."""
    small().save_pretrained(tmp_path / "m")
    return tmp_path / "m"


@pytest.fixture
def folder(checked):
    """A folder without a checksum, which a user may remove. The weights are checked anyway."""
    path = checked / "config.json"
    config = json.loads(path.read_text())
    del config["sha256"]
    path.write_text(json.dumps(config))
    return checked


def edit_config(folder, **changes):
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    if "sha256" not in changes:
        config.pop("sha256", None)
    path.write_text(json.dumps(config))


def change_tensors(folder, edit):
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


def refused(folder, words):
    with pytest.raises(ModelError, match=words) as error:
        model_folder.load(folder)
    assert "\n" not in str(error.value)


def test_half_precision_is_loaded_as_float32(small, tmp_path):
    solver = small()
    saved = model_folder.Saved(solver.model, solver.task, {"n": "5"})
    model_folder.save(tmp_path, saved, torch.float16)
    assert load_file(tmp_path / "model.safetensors")["v"].dtype == torch.float16
    loaded = model_folder.load(tmp_path)
    assert loaded.trained == {"n": "5"}
    for name, tensor in loaded.model.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, solver.model.state_dict()[name].half().float())


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_truncated_files_are_refused(folder, keep):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    refused(folder, "not a whole safetensors file")


def test_missing_extra_misshapen_and_infinite_tensors_are_refused(folder):
    change_tensors(folder, lambda t: t.update(w=torch.ones(1)))
    refused(folder, "tensor 'w' is not one of this model's")
    change_tensors(folder, lambda t: (t.pop("w"), t.update(v=torch.ones(3))))
    refused(folder, r"tensor 'v' must be \(16,\), got \(3,\)")
    change_tensors(folder, lambda t: t.update(v=torch.full((16,), torch.nan)))
    refused(folder, "tensor 'v' has a value that is not finite")
    change_tensors(folder, lambda t: t.update(v=torch.ones(16, dtype=torch.int64)))
    refused(folder, "tensor 'v' must be of torch.float16, .*, got torch.int64")
    change_tensors(folder, lambda t: t.pop("v"))
    refused(folder, "tensor 'v' is missing")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 2}, '"format": 1'),
        ({"surprise": 1}, "key 'surprise' is unknown"),
        ({"model": "ptr-nett"}, "unknown model 'ptr-nett'; did you mean 'ptr-net'"),
        ({"task": "hul"}, "unknown task 'hul'; did you mean 'hull'"),
        ({"task_settings": {"star": 1}}, "did you mean 'start'"),
        ({"task_settings": {"start": "top"}}, "task hull: unknown start 'top'"),
        (
            {"model_settings": {"hidden_size": -5}},
            "model ptr-net: hidden_size: expected a whole number from 1 to",
        ),
        (
            {"model_settings": {"hidden_size": "big"}},
            "hidden_size: expected a whole number from 1 to 65536, got 'big'",
        ),
        (
            {"model_settings": {"hidden_size": 10**9}},
            "expected a whole number from 1 to 65536, got 1000000000",
        ),
        (
            {"model_settings": {"hidden_size": 65536}},
            r"tensor 'decoder.b_hidden' .* \(262144,\)",
        ),
        ({"model_settings": {"units": 5}}, "unknown setting"),
        ({"model_settings": {"features": 3}}, "unknown setting"),
        ({"model_settings": {"name": "x"}}, "unknown setting"),
        ({"task_settings": {"name": "x"}}, "unknown setting"),
        ({"task_settings": {"start": 5}}, "task hull: unknown start '5'"),
        (
            {"task_settings": {"closed": "no"}},
            "task hull: closed: expected true or false",
        ),
        ({"model_settings": []}, "must be dict"),
        ({"model": 3}, "must be str"),
    ],
)
def test_invalid_configurations_are_refused(folder, changes, words):
    edit_config(folder, **changes)
    refused(folder, words)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 1}', "\x00", "[" * 100_000])
def test_files_that_are_not_a_configuration_are_refused(folder, text):
    (folder / "config.json").write_text(text)
    refused(folder, "config.json: ")


def test_missing_files_are_named(folder):
    (folder / "model.safetensors").unlink()
    refused(folder, "No such file")
    refused(folder / "config.json", "expected a model's folder, got a file")
    (folder / "config.json").unlink()
    refused(folder, "no model is there")
    (folder / "recipe.toml").touch()
    refused(folder, f"to go on with the training, run: ptrnet train --output {folder} --resume")


def test_complaints_about_long_values_are_short(folder):
    config = (folder / "config.json").read_text()
    for changes in ({"model": "x" * 10**5}, {"x" * 10**5: 1}, {"task": [1] * 10**5}):
        edit_config(folder, **changes)
        with pytest.raises(ModelError) as error:
            model_folder.load(folder)
        assert len(str(error.value)) < 500
        (folder / "config.json").write_text(config)


def test_a_pickle_is_never_read(folder):
    torch.save({"v": torch.ones(16)}, folder / "model.safetensors")
    refused(folder, "not a whole safetensors file")


def test_tensors_of_other_types_are_refused(folder):
    change_tensors(folder, lambda t: t.update(v=torch.ones(16).to(torch.float8_e4m3fn)))
    refused(folder, "got torch.float8_e4m3fn")
    change_tensors(folder, lambda t: t.update(v=torch.full((16,), 1e300, dtype=torch.float64)))
    refused(folder, "tensor 'v' has a value that is not finite")


def test_every_flipped_bit_of_the_weights_is_detected(checked):
    path = checked / "model.safetensors"
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(0, 8 * len(content), 30).tolist():
        damaged = bytearray(content)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        refused(checked, "/m: config.json or model.safetensors is damaged, was edited, or")
    path.write_bytes(content)
    model_folder.load(checked)


def test_replaced_weights_are_refused_until_the_checksum_is_removed(checked, small, tmp_path):
    small(seed=5).save_pretrained(tmp_path / "other")
    other = load_file(tmp_path / "other" / "model.safetensors")
    save_file(other, checked / "model.safetensors")
    refused(checked, 'another model; to use them nevertheless, remove "sha256" from config.json')
    config = json.loads((checked / "config.json").read_text())
    assert config.pop("sha256") != ""
    (checked / "config.json").write_text(json.dumps(config))
    assert torch.equal(model_folder.load(checked).model.state_dict()["v"], other["v"])
    edit_config(checked, sha256=5)
    refused(checked, "key 'sha256' must be str, got 5")


def test_a_full_disk_while_saving_keeps_the_old_model(small, folder, monkeypatch):
    before = (folder / "model.safetensors").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        small(seed=2).save_pretrained(folder)
    assert (folder / "model.safetensors").read_bytes() == before
    files = ["README.md", "config.json", "model.safetensors"]
    assert sorted(p.name for p in folder.iterdir()) == files


def test_a_configuration_is_unchanged_after_write_and_read(small, tmp_path):
    """Otherwise a model would answer with a different setting."""
    small("sort", "set-ptr-net").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    text = path.read_text()
    path.write_text(json.dumps(json.loads(text)))  # other spaces do not change the content
    model_folder.load(tmp_path)
    path.write_text(text.replace('"dropout": 0.0', '"dropout": 0.3'))
    refused(tmp_path, 'was edited, .*; to use them nevertheless, remove "sha256" from config.json')
    edit_config(tmp_path)
    assert model_folder.load(tmp_path).model.settings()["dropout"] == 0.3


def test_a_network_without_a_name_is_not_saved(small, tmp_path):
    """A reader of the files could not build it."""
    solver = small()
    solver.model.__class__ = type("MyNet", (type(solver.model),), {})
    with pytest.raises(ModelError, match=r"MyNet has no name: ptrnet.models.register\("):
        solver.save_pretrained(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_missing_plug_in_is_named(folder):
    edit_config(folder, task="top")
    refused(folder, "; name its plug-in by --plugins FILE or PTRNET_PLUGINS")


@pytest.mark.parametrize("scores", [5, [5], [{"n": 5}], [{"n": 5, "metric": "x", "count": "y"}]])
def test_scores_that_cannot_be_shown_are_refused(small, tmp_path, scores):
    small("sort").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["trained"]["scores"] = scores
    del config["sha256"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="expected a list of measures"):
        model_folder.load(tmp_path)


def test_a_configuration_comes_last(small, tmp_path, monkeypatch):
    """A folder with a configuration counts as a model, so the weights must be there before it."""
    order, replace = [], Path.replace
    monkeypatch.setattr(Path, "replace", lambda t, p: order.append(p.name) or replace(t, p))
    small("sort").save_pretrained(tmp_path)
    assert order[:2] == ["model.safetensors", "config.json"]


def test_a_model_is_named_without_importing_other_networks():
    code = (
        "import sys; from ptrnet import models; from ptrnet import model_folder;"
        "model = models.build('set-ptr-net', 2, 1, hidden_size=8);"
        "print(model_folder.registered_name(model), 'ptrnet.models.ptr_net' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set-ptr-net False\n", done.stderr
