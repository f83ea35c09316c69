"""Small models for exports: every registered one, and each setting that changes its graphs."""

import torch

from ptrnet import models, tasks
from ptrnet.solver import Solver
from tests.support.small_models import SIZES

APEXES = {"sequence": "apexes"}
SCALE = {"center": (0.4, 0.6), "spread": (0.2, 0.3)}


def of_cells(name):
    """Return settings of recurrent layers and scores, as far as the model has them."""
    known = models.setting_names(name)
    return {k: v for k, v in {"cell": "gru", "layers": 2, "score": "dot"}.items() if k in known}


SETTINGS = [
    *((name, "hull", {}, {}) for name in models.names()),
    *((name, "sort", {}, of_cells(name)) for name in models.names() if of_cells(name)),
    ("ptr-net", "hull", {"closed": True}, {"score": "general"}),
    ("ptr-net", "delaunay", {"separator": True}, {"bidirectional": True, "layers": 2}),
    ("transformer-ptr-net", "hull", {}, {"edge_frames": True, "octaves": 2}),
    ("transformer-ptr-net", "hull", {"start": "lowest-index"}, {"see_indices": True}),
    ("transformer-ptr-net", "delaunay", APEXES, {"edge_frames": True, "frame_edge": "open"}),
    ("remaining-ptr-net", "tsp", {"order": "lexicographic"}, {"nearest": 4, "octaves": 1}),
    ("remaining-ptr-net", "hull", {"closed": True}, {"repeats": True}),
    ("remaining-ptr-net", "tsp", {}, {"align": True, "see_distances": True}),
    ("set-ptr-net", "custom", {"kind": "choice", **SCALE}, {"answer": "one", "octaves": 2}),
    ("set-ptr-net", "custom", {"kind": "grades", **SCALE}, {"answer": "all", "see_logs": True}),
    ("set-ptr-net", "custom", {"kind": "sequence", **SCALE}, {"answer": "any", "repeats": True}),
]


def build(model, task="hull", task_settings=None, settings=None, scale=4.0):
    """Return an untrained solver, with weights that are large enough to prefer some tokens."""
    torch.manual_seed(3)
    kind = tasks.get(task, **(task_settings or {}))
    sizes = {key: SIZES[key] for key in SIZES if key in models.setting_names(model)}
    network = models.build(
        model, kind.facts.num_features, kind.facts.num_specials, **{**sizes, **(settings or {})}
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(scale)
        if getattr(network, "answer", "") == "one":  # mixed with a logit
            network.logit_share.fill_(0.3)
            network.logit_weights.copy_(torch.randn(kind.facts.num_features))
    return Solver(network, kind, {"n": "3-16"})


def label(case):
    return "-".join([case[0], case[1], *case[3]])
