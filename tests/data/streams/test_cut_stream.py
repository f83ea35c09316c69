"""Random cuts of answers: what they may be, and that they are counted."""

import numpy as np
import pytest
import torch

from ptrnet import models, tasks
from ptrnet.data.streams import CutStream, ExampleStream, cut_batch
from ptrnet.training.losses import cut_losses


def cycle(tour):
    """A closed tour as the set of its edges."""
    return {frozenset(edge) for edge in zip(tour, [*tour[1:], tour[0]], strict=True)}


@pytest.mark.parametrize("task", [tasks.get("tsp"), tasks.get("hull"), tasks.get("sort")])
def test_what_is_cut_is_the_answer(task):
    stream = ExampleStream(task, [5, 7], 4, seed=3)
    cut_stream, beginnings = CutStream(stream, task, 3, seed=3), set()
    for k in range(30):
        batch, cut = stream.batch(k), cut_stream.batch(k)
        assert cut.inputs.shape == (12, *batch.inputs.shape[1:])
        assert int(task.circular) <= cut.num_known < int(batch.target_lengths.max())
        for row in range(12):
            end = int(batch.target_lengths[row // 3])
            assert torch.equal(cut.inputs[row], batch.inputs[row // 3])
            actual, expected = cut.targets[row], batch.targets[row // 3]
            assert cut.target_lengths[row] == end and actual[end - 1] == 0
            if task.circular:
                assert cycle(actual[: end - 1].tolist()) == cycle(expected[: end - 1].tolist())
                beginnings.add((int(actual[0]), int(actual[1])))
            else:
                assert torch.equal(actual, expected)
        again = CutStream(stream, task, 3, seed=3).batch(k)
        assert again.num_known == cut.num_known and torch.equal(again.targets, cut.targets)
    assert len(beginnings) > 20 or not task.circular


@pytest.mark.parametrize("task", [tasks.get("tsp"), tasks.get("hull")])
def test_an_example_without_a_token_to_learn_stays_one(task):
    """As the part of a process to which a batch left no row."""
    batch = ExampleStream(task, [5], 1, seed=3).batch(0)
    batch = batch._replace(target_lengths=torch.zeros(1, dtype=torch.int64))
    cut = cut_batch(np.random.default_rng(0), task, batch, 2)
    assert cut.num_known == 0 and torch.equal(cut.targets, batch.targets.repeat(2, 1))
    loss, right = cut_losses(models.build("ptr-net", 2, 1, hidden_size=4), cut)
    assert loss == 0 and right.all()


@pytest.mark.parametrize("name", ["ptr-net", "remaining-ptr-net"])
def test_the_loss_of_a_rest_is_of_the_likelihoods(name):
    """The next token's is that of `log_probs`; a plain model's others are, too."""
    torch.manual_seed(1)
    model, task = models.build(name, 2, 1, hidden_size=16).double(), tasks.get("hull")
    batch = ExampleStream(task, [8], 6, seed=1).batch(0)
    batch = batch._replace(inputs=batch.inputs.double())
    likelihoods = model.log_probs(*batch[:4]).gather(2, batch.targets[..., None])[..., 0].detach()
    for seed in range(5):
        cut = cut_batch(np.random.default_rng(seed), task, batch, 1)
        ends, num_known = batch.target_lengths.tolist(), cut.num_known
        rows = [likelihoods[b, num_known:end] for b, end in enumerate(ends) if end > num_known]
        first = -torch.stack([row[0] for row in rows]).mean()
        rest = [-row[1:] for row in rows if len(row) > 1]
        others = torch.cat(rest).mean() if rest else torch.tensor(0.0)
        loss, right = cut_losses(model, cut)
        if name == "ptr-net":
            torch.testing.assert_close(loss, first + others)
        next_rows = model.rest_log_probs(*cut[:4], cut.num_known)[:, 0]
        torch.testing.assert_close(next_rows, model.log_probs(*cut[:4])[:, num_known])
        assert right.shape == (6,) and loss > first - 1e-9
