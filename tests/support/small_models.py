"""Small untrained solvers, built in milliseconds."""

import numpy as np
import torch

from ptrnet import models, tasks
from ptrnet.models.parts.spaces import Spaces
from ptrnet.models.parts.trees import DEPTH, LEAVES, Trees
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


def random_spaces(num_features, num_rows, seed=0):
    """Return spaces whose numbers are all random."""
    random = torch.Generator().manual_seed(seed)
    spaces = Spaces(num_features, num_rows)
    for value in spaces.state_dict().values():
        value.copy_(torch.randn(value.shape, generator=random))
    return spaces


def random_trees(count, num_features, seed=0):
    """Return trees that split random leaves at random features and thresholds."""
    rng = np.random.default_rng(seed)
    trees = Trees(count)
    for tree in range(count):
        leaves, size = {0: 0}, 1  # the depth of each leaf, by its node
        for _ in range(int(rng.integers(2, LEAVES))):
            node = int(rng.choice([leaf for leaf, depth in leaves.items() if depth < DEPTH]))
            depth = leaves.pop(node) + 1
            trees.features[tree, node] = int(rng.integers(num_features))
            trees.thresholds[tree, node] = float(rng.normal())
            trees.branches[tree, node] = torch.tensor([size, size + 1])
            leaves |= {size: depth, size + 1: depth}
            size += 2
        for leaf in leaves:
            trees.values[tree, leaf] = float(rng.normal())
    return trees
