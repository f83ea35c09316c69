"""What every test shares: the process settings of the program, and small models."""

from ptrnet import runtime

runtime.tune()

import pytest  # noqa: E402
import torch  # noqa: E402

from ptrnet import models, tasks  # noqa: E402
from ptrnet.solver import Solver  # noqa: E402

# Sizes of the small models, of the settings that a model has.
SIZES = {"hidden_size": 16, "n": 6, "encoder_layers": 1, "decoder_layers": 2, "feed_forward": 8}


@pytest.fixture
def small():
    """A function that builds an untrained solver of a task, by default of 16 units."""

    def build(task="hull", model="ptr-net", seed=0, scale=1.0, **settings):
        torch.manual_seed(seed)
        kind = tasks.get(task, **settings)
        known = models.setting_names(model)
        sizes = {**SIZES, "repeats": kind.repeats}
        sizes = {key: sizes[key] for key in sizes if key in known}
        network = models.build(model, kind.num_features, kind.num_specials, **sizes)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(scale)
        return Solver(network, kind, {"n": "5", "steps": 0, "seed": seed})

    return build
