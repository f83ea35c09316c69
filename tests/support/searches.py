"""Small batches and what a recorded search is compared with."""

import numpy as np
import torch

from ptrnet.constraints import Free
from ptrnet.decoding import graphs

SIZES = (5, 3, 5, 4)


def batch_of(solver, seed, sizes=SIZES):
    """A batch of the instances' sizes, in float64, padded with garbage."""
    network, task = solver.model, solver.task
    sizes = [network.n] * len(sizes) if network.n is not None else sizes
    rng = np.random.default_rng(seed)
    inputs = torch.rand(
        len(sizes), max(sizes), task.num_features, dtype=torch.float64, generator=_generator(seed)
    )
    for row, n in zip(inputs, sizes, strict=True):
        row[:n] = torch.from_numpy(task.sample(rng, 1, n)[0])
    max_lengths = torch.tensor([task.max_length(n) for n in sizes])
    return inputs, torch.tensor(sizes), max_lengths


def _generator(seed):
    return torch.Generator().manual_seed(seed)


def plain(decoder, model, batch, constraint=None):
    with torch.no_grad():
        return decoder._begin(model, constraint or Free(), *batch).run()


def check(actual, expected):
    assert torch.equal(actual.tokens, expected.tokens)
    assert torch.equal(actual.lengths, expected.lengths)
    torch.testing.assert_close(actual.log_probs, expected.log_probs, rtol=1e-9, atol=1e-9)


def searches_of(model):
    return graphs._searches[model].recorded if model in graphs._searches else {}


def hulls(small, scale=8.0):
    solver = small("hull", "ptr-net", scale=scale)
    solver.model.double()
    return solver.model, [batch_of(solver, seed) for seed in range(5)]
