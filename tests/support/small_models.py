"""Small untrained solvers, built in milliseconds."""

import torch

from ptrnet import models, tasks
from ptrnet.solver import Solver

# Sizes of the small models, of the settings that a model has.
SIZES = {"hidden_size": 16, "n": 6, "encoder_layers": 1, "decoder_layers": 2, "feed_forward": 8}


def small_solver(task="hull", model="ptr-net", seed=0, scale=1.0, **settings):
    """An untrained solver of a task, by default of 16 units; `scale` multiplies its weights."""
    torch.manual_seed(seed)
    kind = tasks.get(task, **settings)
    known = models.setting_names(model)
    sizes = {**SIZES, "repeats": kind.repeats, "answer": kind.answer}
    sizes = {key: sizes[key] for key in sizes if key in known}
    network = models.build(model, kind.num_features, kind.num_specials, **sizes)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(scale)
    return Solver(network, kind, {"n": "5", "steps": 0, "seed": seed})
