"""Random cuts of answers: what they may be, and that they are counted."""

import numpy as np
import pytest
import torch

from ptrnet import models, tasks
from ptrnet.data.cuts import CutStream, cut
from ptrnet.data.stream import ExampleStream
from ptrnet.training.losses import rest_losses


def cycle(tour):
    """A closed tour as the set of its edges."""
    return {frozenset(edge) for edge in zip(tour, [*tour[1:], tour[0]], strict=True)}


@pytest.mark.parametrize("task", [tasks.get("tsp"), tasks.get("hull"), tasks.get("sort")])
def test_what_is_cut_is_the_answer(task):
    stream = ExampleStream(task, [5, 7], 4, seed=3)
    cuts, beginnings = CutStream(stream, 3), set()
    for k in range(30):
        whole, (batch, known) = stream.batch(k), cuts.batch(k)
        assert batch.inputs.shape == (12, *whole.inputs.shape[1:])
        assert int(task.circular) <= known < int(whole.target_lengths.max())
        for row in range(12):
            end = int(whole.target_lengths[row // 3])
            assert torch.equal(batch.inputs[row], whole.inputs[row // 3])
            ours, theirs = batch.targets[row], whole.targets[row // 3]
            assert batch.target_lengths[row] == end and ours[end - 1] == 0
            if task.circular:
                assert cycle(ours[: end - 1].tolist()) == cycle(theirs[: end - 1].tolist())
                beginnings.add((int(ours[0]), int(ours[1])))
            else:
                assert torch.equal(ours, theirs)
        again = CutStream(stream, 3).batch(k)
        assert again.known == known and torch.equal(again.batch.targets, batch.targets)
    assert len(beginnings) > 20 or not task.circular


@pytest.mark.parametrize("name", ["ptr-net", "remaining-ptr-net"])
def test_the_loss_of_a_rest_is_of_the_likelihoods(name):
    """The next token's is that of `log_probs`; a plain model's others are, too."""
    torch.manual_seed(1)
    model, task = models.build(name, 2, 1, hidden_size=16).double(), tasks.get("hull")
    batch = ExampleStream(task, [8], 6, seed=1).batch(0)
    batch = batch._replace(inputs=batch.inputs.double())
    whole = model.log_probs(*batch).gather(2, batch.targets[..., None])[..., 0].detach()
    for seed in range(5):
        found = cut(np.random.default_rng(seed), task, batch, 1)
        ends, known = batch.target_lengths, found.known
        rows = [whole[b, known:end] for b, end in enumerate(ends.tolist()) if end > known]
        first = -torch.stack([row[0] for row in rows]).mean()
        rest = [-row[1:] for row in rows if len(row) > 1]
        others = torch.cat(rest).mean() if rest else torch.tensor(0.0)
        loss, right = rest_losses(model, found)
        if name == "ptr-net":
            torch.testing.assert_close(loss, first + others)
        nexts = model.rest_log_probs(*batch, known)[:, 0]
        torch.testing.assert_close(nexts, model.log_probs(*batch)[:, known])
        assert right.shape == (6,) and loss > first - 1e-9
