"""Compare the loss of a training step with its formula, in one process and in several."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ptrnet import models, tasks
from ptrnet.data.batches import Batch, batch_of
from ptrnet.training.module import TrainingModule
from ptrnet.training.recipe import Data, Objective, Recipe
from ptrnet.types import Dataset, Example, ranking
from tests.support.small_models import small_solver


@pytest.fixture
def model():
    torch.manual_seed(0)
    return models.build("ptr-net", 2, 1, hidden_size=8)


@pytest.fixture
def batch():
    """Return answers of 3 to 6 tokens, including END."""
    rng = np.random.default_rng(1)
    points = [rng.random((n, 2)) for n in (3, 5, 8, 8, 4)]
    answers = [rng.permutation(len(x))[: 2 + k] for k, x in enumerate(points)]
    rows = [Example(x, answer) for x, answer in zip(points, answers, strict=True)]
    return batch_of(Dataset.of(rows), tasks.get("hull"))


def negative_log_likelihoods(model, batch):
    """Compute them for one instance and one token after the other."""
    sums = []
    for x, n, targets, m in zip(*batch[:4], strict=True):
        log_probs = model.log_probs(x[None, :n], None, targets[None, :m])[0]
        sums.append(-sum(log_probs[i, targets[i]] for i in range(m)))
    return torch.stack(sums)


def step(model, batch, *counts_of_others, loss="tokens"):
    """Return the loss of a step, if the other processes have this many tokens."""
    recipe = Recipe.from_table(task="hull")
    objective = Objective(loss=loss)
    object.__setattr__(recipe, "objective", objective)  # a recipe of gains would need a file
    world_size = 1 + len(counts_of_others)

    def all_reduce(count, reduce_op):
        assert reduce_op == "mean"
        return (count + sum(counts_of_others)) / world_size

    fabric = SimpleNamespace(
        world_size=world_size, all_reduce=all_reduce, device=torch.device("cpu")
    )
    return TrainingModule(model, recipe, fabric)(batch, 0)["loss"]


def test_the_loss_is_the_mean_over_tokens(model, batch):
    assert len(set(batch.target_lengths.tolist())) > 1
    expected = negative_log_likelihoods(model, batch).sum() / batch.target_lengths.sum()
    torch.testing.assert_close(step(model, batch), expected)


def test_processes_have_the_loss_of_one(model, batch):
    """Their losses are averaged. One has more tokens; the other has a row that only fills up."""
    parts = [Batch(*(t[:3] for t in batch[:4])), Batch(*(t[2:].clone() for t in batch[:4]))]
    parts[1].target_lengths[0] = 0
    counts = [part.target_lengths.sum() for part in parts]
    assert counts[0] != counts[1]
    losses = step(model, parts[0], counts[1]), step(model, parts[1], counts[0])
    torch.testing.assert_close(sum(losses) / 2, step(model, batch))


def test_processes_have_the_loss_of_one_if_it_compares_gains():
    """One process has two instances with gains. The other has one, and one without gains."""
    task = tasks.get("custom", kind="grades", center=(0.0, 0.0), spread=(1.0, 1.0))
    model = models.build("set-ptr-net", 2, 1, hidden_size=8, answer=task.facts.answer)
    rng = np.random.default_rng(0)
    rows = [
        Example(rng.normal(size=(len(grades), 2)), ranking(grades), grades=grades)
        for grades in map(np.array, ([1.0, 2], [0.0, 1, 3, 0, 1], [2.0, 0], [0.0, 0, 0]))
    ]
    parts = batch_of(Dataset.of(rows[:2]), task), batch_of(Dataset.of(rows[2:]), task)
    losses = step(model, parts[0], 1, loss="gains"), step(model, parts[1], 2, loss="gains")
    torch.testing.assert_close(
        sum(losses) / 2, step(model, batch_of(Dataset.of(rows), task), loss="gains")
    )


def test_processes_have_the_loss_of_one_if_answers_have_weights(model, batch):
    batch = batch._replace(weights=torch.tensor([0.5, 2, 0, 1, 3]))
    parts = [[t[rows] for t in (*batch[:4], batch.weights)] for rows in (slice(3), slice(3, 5))]
    parts = [Batch(*part[:4], weights=part[4]) for part in parts]
    counts = [(part.target_lengths * part.weights).sum() for part in parts]
    losses = step(model, parts[0], counts[1]), step(model, parts[1], counts[0])
    torch.testing.assert_close(sum(losses) / 2, step(model, batch))


def test_a_validation_with_weights_has_the_losses_of_repeated_answers(model, batch):
    counts = torch.tensor([2, 1, 0, 4, 1])
    module = TrainingModule(model, Recipe.from_table(task="hull"), None)

    def total(batches):
        return torch.cat([module.validate(part)[0] for part in batches]).sum()

    parts = torch.arange(5).split([1, 4])
    weighted = [Batch(*(t[k] for t in batch[:4]), weights=counts[k].float()) for k in parts]
    repeats = [k.repeat_interleave(counts[k]) for k in parts]
    repeated = [Batch(*(t[k] for t in batch[:4])) for k in repeats]
    torch.testing.assert_close(total(weighted), total(repeated))


def test_a_network_does_not_learn_from_the_rows_that_it_holds_out(model, batch):
    rest = batch._replace(held_out_by=None)
    rest = Batch(*(tensor[1:] for tensor in rest[:4]))
    held_out = batch._replace(held_out_by=torch.tensor([0, -1, 1, 1, -1]))
    torch.testing.assert_close(step(model, held_out), step(model, rest))


def test_a_batch_that_a_network_holds_out_as_a_whole_has_loss_zero(model, batch):
    """In several processes, too, where the loss is weighted by the share of the tokens."""
    held_out = batch._replace(held_out_by=torch.zeros(5, dtype=torch.int64))
    assert step(model, held_out) == 0
    assert step(model, held_out, 0) == 0


@pytest.mark.parametrize("kind", ["permutation", "subset", "sequence", "set", "grades"])
def test_a_validation_has_the_metric_of_the_kind(kind):
    """It equals the metric of an evaluation of the same examples."""
    solver = small_solver("custom", scale=4.0, kind=kind, center=(0.0, 0.0), spread=(1.0, 1.0))
    rng = np.random.default_rng(2)
    examples = []
    for n in (3, 5, 2, 5):
        grades = rng.integers(0, 3, n).astype(float)
        size = n if kind in ("permutation", "grades") else n - 1
        examples.append(
            Example(
                rng.normal(size=(n, 2)),
                np.argsort(-grades, kind="stable")[:size],
                grades=grades if kind == "grades" else None,
            )
        )
    metric = solver.task.facts.metric
    module = TrainingModule(solver.model, Recipe.from_table(task="hull"), None)
    module.recipe = SimpleNamespace(task=solver.task, data=Data())  # Recipe would need a file
    _, metrics = module.validate(batch_of(Dataset.of(examples), solver.task))
    expected = solver.evaluate(examples)[metric]["value"]
    assert float(metrics[metric]) == pytest.approx(expected, rel=1e-5)
