"""Each damaged checkpoint is noticed, and the one before it is used."""

import re

import numpy as np
import pytest
import torch

from ptrnet.errors import InputError
from ptrnet.model_folder import load
from ptrnet.training import checkpoint
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train

CONTENT = {
    "global_step": 60,
    "state_dict": {"v": torch.arange(2000.0)},
    "optimizer": {},
    "best": {},
}


@pytest.fixture
def path(tmp_path):
    checkpoint.write(tmp_path / checkpoint.LAST, CONTENT)
    return tmp_path / checkpoint.LAST


def read_or_none(path):
    try:
        return checkpoint.read(path)
    except InputError as error:
        assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
        return None


def is_unchanged(read):
    return read["global_step"] == 60 and torch.equal(
        read["state_dict"]["v"], CONTENT["state_dict"]["v"]
    )


def test_no_flipped_bit_changes_what_is_read(path):
    content, rng = path.read_bytes(), np.random.default_rng(0)
    assert is_unchanged(checkpoint.read(path))
    for position in rng.integers(0, 8 * len(content), 200).tolist():
        damaged = bytearray(content)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        assert read_or_none(path) is None


def test_no_zeroed_sector_changes_what_is_read(path):
    content = path.read_bytes()
    for start in range(0, len(content), 512):
        sector = content[start : start + 512]
        path.write_bytes(content[:start] + bytes(len(sector)) + content[start + 512 :])
        read = read_or_none(path)
        assert is_unchanged(read) if read else sector.strip(b"\0"), start


@pytest.mark.parametrize("size", [0, 1, 100, -1, -32, -100])
def test_a_truncated_checkpoint_gives_our_error_message(path, size):
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputError, match=r"/checkpoint.ckpt: .* damaged one \(\d+ bytes\)$"):
        checkpoint.read(path)


def test_torch_can_read_our_checkpoints(path):
    assert is_unchanged(torch.load(path, weights_only=True))


RECIPE = Recipe.from_table(
    task="sort", n="2", steps=30, hidden_size=4, batch_size=2, valid_batches=0, checkpoint_every=10
)


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def test_a_damaged_last_checkpoint_falls_back_to_the_one_before(tmp_path, capsys):
    run = tmp_path / "run"
    straight = train(RECIPE, run).model.state_dict()
    capsys.readouterr()
    damage(run / "checkpoint.ckpt")
    again = train(RECIPE, run, resume=True).model.state_dict()
    line = rf"^{run}/checkpoint.ckpt: not a .* damaged one .*; using the checkpoint of step 20$"
    assert re.search(line, capsys.readouterr().err, re.MULTILINE)
    assert all(torch.equal(straight[name], again[name]) for name in straight)
    assert checkpoint.read(run / "checkpoint.ckpt")["global_step"] == 30
    assert checkpoint.read(run / "previous.ckpt")["global_step"] == 20
    assert torch.equal(load(run).model.state_dict()["v"], straight["v"])


def test_another_run_that_starts_from_damaged_weights_does_not_claim_to_resume(tmp_path, capsys):
    run = tmp_path / "run"
    train(RECIPE, run)
    damage(run / "checkpoint.ckpt")
    (run / "config.json").unlink()  # as in a run that was stopped
    train(Recipe.from_table(RECIPE.table(), weights=str(run)), tmp_path / "other")
    err = capsys.readouterr().err
    assert "using the checkpoint of step 20" in err and "resum" not in err


def test_two_damaged_checkpoints_are_refused(tmp_path):
    train(RECIPE, tmp_path / "run")
    damage(tmp_path / "run" / "checkpoint.ckpt")
    damage(tmp_path / "run" / "previous.ckpt")
    with pytest.raises(InputError, match=r"/checkpoint\.ckpt: not a .* damaged one"):
        train(RECIPE, tmp_path / "run", resume=True)


def test_a_kill_between_two_renames_loses_no_checkpoint(tmp_path, capsys):
    run = tmp_path / "run"
    train(RECIPE, run)
    (run / "checkpoint.ckpt").unlink()
    assert checkpoint.read_last(run).content["global_step"] == 20
    assert "No such file or directory; using the checkpoint of step 20" in capsys.readouterr().err
