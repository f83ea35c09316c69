"""The settings of models: values that are refused, and names that old files contain."""

import re

import pytest
import torch

from ptrnet import models
from ptrnet.errors import InputError
from ptrnet.models.settings import every_setting


def known(name, options):
    """Return those options that are settings of the model."""
    return {key: options[key] for key in options.keys() & set(models.setting_names(name))}


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("ptr-net", {"nearest": 5}, "unknown setting of model ptr-net 'nearest'"),
        ("remaining-ptr-net", {"see_distance": False}, "did you mean 'see_distances'"),
        ("set-ptr-net", {"dropout": -0.1}, "dropout: expected a .*number.* got -0.1"),
        ("set-ptr-net", {"dropout": float("nan")}, "dropout: expected a finite number .* got nan"),
        ("ptr-net", {"cell": "rnn"}, "model ptr-net: unknown cell 'rnn'"),
        ("ptr-net", {"cell": 3}, "model ptr-net: unknown cell '3'"),
        (
            "ptr-net",
            {"layers": 0},
            "model ptr-net: layers: expected .* from 1 to 64, got 0",
        ),
        ("ptr-net", {"layers": True}, "layers: expected a whole number from 1 to 64, got True"),
        (
            "ptr-net",
            {"bidirectional": 1},
            "bidirectional: expected true or false, got 1",
        ),
        ("ptr-net", {"bidirectional": True, "hidden_size": 7}, "expected an even number .* got 7"),
        ("ptr-net", {"n": 5}, "unknown setting of model ptr-net 'n'"),
        ("transformer-ptr-net", {"hidden_size": 6}, "expected a multiple of 4 heads, got 6"),
        ("transformer-ptr-net", {"cell": "gru"}, "unknown setting of model transf.* 'cell'"),
    ],
)
def test_bad_settings_are_refused_in_one_line(name, settings, words):
    with pytest.raises(InputError, match=words) as error:
        models.build(name, 2, 1, **settings)
    assert "\n" not in str(error.value)


def test_tensors_of_ptr_net_keep_their_names():
    network = "(w_input|w_hidden|b_input|b_hidden)"
    known = f"(encoder|decoder).{network}|key.weight|query.weight|v|special_inputs|special_states"
    tensors = models.build("ptr-net", 2, 1, hidden_size=4).state_dict()
    assert len(tensors) == 13 and all(re.fullmatch(known, name) for name in tensors)


@pytest.mark.parametrize("name", models.names())
def test_model_can_be_rebuilt_from_its_settings(name):
    options = {"n": 4, "layers": 2, "cell": "gru", "heads": 2, "octaves": 1}
    model = models.build(name, 3, 2, hidden_size=6, **known(name, options))
    again = models.build(name, 3, 2, **model.settings())
    shapes = [{key: value.shape for key, value in m.state_dict().items()} for m in (model, again)]
    assert shapes[0] == shapes[1] and again.settings() == model.settings()


def test_every_setting_lists_the_settings_of_all_models():
    every = [*models.names(), *models.UNLISTED]
    named = {setting for name in every for setting in models.setting_names(name)}
    assert named == set(every_setting())


@pytest.mark.parametrize("name", models.names())
@pytest.mark.parametrize(
    "options", [{}, {"cell": "gru", "layers": 2, "bidirectional": True, "octaves": 8}]
)
def test_autocast_changes_log_probs_by_rounding_only(name, options):
    """In both training and evaluation mode. bfloat16 has three digits."""
    torch.manual_seed(0)
    model = models.build(name, 2, 1, hidden_size=16, **known(name, {"n": 6, **options}))
    inputs, targets = torch.rand(4, 6, 2), torch.randint(0, 7, (4, 5))
    for mode in (True, False):
        model.train(mode)
        exact = model.log_probs(inputs, None, targets)
        with torch.autocast("cpu", torch.bfloat16):
            lowered = model.log_probs(inputs, None, targets)
        assert lowered.dtype == torch.float32
        torch.testing.assert_close(lowered, exact, rtol=0.02, atol=0.02)
