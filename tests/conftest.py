"""What every test shares: the process settings of the program, and small models."""

from ptrnet import runtime

runtime.tune()

import pytest  # noqa: E402
import torch  # noqa: E402

from ptrnet import models, tasks  # noqa: E402
from ptrnet.solver import Solver  # noqa: E402

ONE_N = 6  # of the small models that serve one number of elements


@pytest.fixture
def small():
    """A function that builds an untrained solver of a task, by default of 16 units."""

    def build(task="hull", model="ptr-net", seed=0, scale=1.0, **settings):
        torch.manual_seed(seed)
        kind = tasks.get(task, **settings)
        options = {"n": ONE_N, "repeats": kind.repeats, "hidden_size": 16}
        options |= {"encoder_layers": 1, "feed_forward": 32, "octaves": 2}
        options = {key: options[key] for key in options if key in models.setting_names(model)}
        network = models.build(model, kind.num_features, kind.num_specials, **options)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(scale)
        return Solver(network, kind, {"n": "5", "steps": 0, "seed": seed})

    return build
