"""Small untrained solvers, built in milliseconds."""

import torch

from ptrnet import models, tasks
from ptrnet.solver import Solver

# Sizes of the small models. Each model takes the settings that it has.
SIZES = {"hidden_size": 16, "n": 6, "encoder_layers": 1, "decoder_layers": 2, "feed_forward": 8}


def small_solver(task="hull", model="ptr-net", seed=0, scale=1.0, **settings):
    """Return an untrained solver, with 16 units by default. `scale` multiplies the weights."""
    torch.manual_seed(seed)
    kind = tasks.get(task, **settings)
    known = models.setting_names(model)
    sizes = {**SIZES, "repeats": kind.facts.repeats, "answer": kind.facts.answer}
    sizes = {key: sizes[key] for key in sizes if key in known}
    network = models.build(model, kind.facts.num_features, kind.facts.num_specials, **sizes)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(scale)
    return Solver(network, kind, {"n": "5", "steps": 0, "seed": seed})
