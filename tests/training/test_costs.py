"""Compare gradients of learning from costs with sums over all answers."""

from itertools import permutations

import numpy as np
import pytest
import torch

from ptrnet import models, tasks
from ptrnet.data import batches
from ptrnet.decoding import Hypotheses
from ptrnet.decoding.log_probs import SequenceLogProbs
from ptrnet.errors import InputError
from ptrnet.training.costs import (
    Sampler,
    cheapest,
    mean_of_others,
    reinforce_loss,
    self_labelling_loss,
)
from ptrnet.types import Dataset, Example

MODELS = ["ptr-net", "transformer-ptr-net", "remaining-ptr-net"]


def total(instance, answers):
    """Return the cost of a tour: its length."""
    return np.array(
        [
            np.linalg.norm(instance[a] - instance[np.roll(a, -1)], axis=1).sum()
            for a in map(np.asarray, answers)
        ]
    )


def sampler(model="ptr-net", task="tsp", costs=total):
    torch.manual_seed(0)
    kind = tasks.get(task)
    network = models.build(model, kind.facts.num_features, kind.facts.num_specials, hidden_size=8)
    return Sampler(network.double(), kind, costs)


def batch_of(n=4, count=3):
    points = np.random.default_rng(1).random((count, n, 2))
    data = Dataset.of(map(Example, points))
    batch = batches.batch_of(data, tasks.get("tsp"), has_answers=False)
    return batch._replace(inputs=batch.inputs.double())


def all_tours(n, count):
    """Return every sequence that the constraint allows, as a search finds them."""
    tours = torch.tensor([[1, *rest, 0] for rest in permutations(range(2, n + 1))])
    tours = tours.expand(count, -1, -1)
    lengths = torch.full(tours.shape[:2], n)
    return Hypotheses(tours, lengths, torch.zeros(lengths.shape))


@pytest.mark.parametrize("model", MODELS)
def test_probabilities_of_all_allowed_answers_sum_to_one(model):
    batch, answers = batch_of(), all_tours(4, 3)
    log_probs = sampler(model).log_probs(batch, answers)
    assert (log_probs.unconstrained <= log_probs.constrained + 1e-6).all()
    log_probs = log_probs.constrained
    assert log_probs.exp().sum(1).tolist() == pytest.approx([1, 1, 1], abs=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_samples_are_drawn_from_those_probabilities(model):
    batch = batch_of(n=3, count=1)
    drawing = sampler(model)
    drawn = drawing.sample(batch, 4000, seed=3)[0].tokens[0]
    answers = all_tours(3, 1)
    expected = drawing.log_probs(batch, answers).constrained.exp()[0].tolist()
    for tour, share in zip(answers.tokens[0], expected, strict=True):
        count = (drawn == tour).all(1).float().mean().item()
        assert abs(count - share) < 4 * (share * (1 - share) / 4000) ** 0.5 + 1e-9


def test_costs_are_of_the_answers_that_were_drawn():
    batch = batch_of(n=5)
    samples, costs = sampler().sample(batch, 6, seed=1)
    for b, instance in enumerate(batch.instances):
        for k in range(6):
            tour = samples.tokens[b, k, :5].numpy() - 1
            assert sorted(tour) == [0, 1, 2, 3, 4] and samples.tokens[b, k, 5] == 0
            assert costs[b, k].item() == pytest.approx(total(instance, [tour])[0], rel=1e-6)


def gradient(loss, network):
    network.zero_grad()
    loss.backward()
    return torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])


def test_reinforce_follows_the_gradient_of_the_mean_cost():
    """Its expected gradient, by summing over all answers, equals the gradient of the mean cost."""
    batch, answers, drawing = batch_of(count=1), all_tours(4, 1), sampler()
    costs = torch.from_numpy(total(batch.instances[0], answers.tokens[0, :, :4].numpy() - 1))
    log_probs = drawing.log_probs(batch, answers).constrained
    expected = gradient((log_probs[0].exp() * costs).sum(), drawing.model)
    weights = drawing.log_probs(batch, answers).constrained.detach().exp()[0]
    mean = torch.zeros_like(expected)
    for k, weight in enumerate(weights):
        one = Hypotheses(*(part[:, k : k + 1] for part in answers))
        policy = drawing.log_probs(batch, one).constrained
        policies, lengths = SequenceLogProbs(policy, policy), one.lengths + 1
        loss = reinforce_loss(policies, lengths, costs[k].view(1, 1), torch.tensor(0.7))
        scale = (costs[k] - 0.7).abs() * lengths.sum()  # the divisor of the loss
        mean += weight * gradient(loss * scale, drawing.model)
    torch.testing.assert_close(mean, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("learning", ["self-labelling", "reinforce"])
def test_forbidden_answers_become_unlikely(learning):
    """If all answers cost the same, the model learns only this."""
    batch, drawing = batch_of(), sampler()
    optimizer = torch.optim.Adam(drawing.model.parameters(), 0.1)
    shares = []
    for seed in range(40):
        samples, _ = drawing.sample(batch, 4, seed)
        lengths, costs = samples.lengths + 1, torch.ones(3, 4)
        log_probs = drawing.log_probs(batch, samples)
        shares.append((log_probs.unconstrained - log_probs.constrained).mean().exp().item())
        if learning == "reinforce":
            loss = reinforce_loss(log_probs, lengths, costs, mean_of_others(costs))
        else:
            loss = self_labelling_loss(log_probs.unconstrained, lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert shares[-1] > 20 * shares[0]


def test_self_labelling_learns_the_cheapest_sample():
    batch, drawing = batch_of(), sampler()
    samples, costs = drawing.sample(batch, 8, seed=2)
    log_probs = drawing.log_probs(batch, samples).unconstrained
    found = cheapest(samples, costs)
    loss = self_labelling_loss(drawing.log_probs(batch, found).unconstrained, found.lengths + 1)
    best = [min(range(8), key=lambda k: costs[b, k]) for b in range(3)]
    expected = -sum(log_probs[b, k] for b, k in enumerate(best)) / (3 * 5)
    assert loss.item() == pytest.approx(expected.item())


def test_equal_costs_have_zero_gradient():
    costs = torch.full((2, 3), 5.0)
    log_probs = torch.zeros(2, 3, requires_grad=True)
    policy = SequenceLogProbs(log_probs, log_probs)
    reinforce_loss(policy, torch.ones(2, 3), costs, mean_of_others(costs)).backward()
    assert not log_probs.grad.any()


def test_the_mean_baseline_excludes_the_sample_itself():
    costs = torch.tensor([[1.0, 2.0, 6.0]])
    assert mean_of_others(costs).tolist() == [[4.0, 3.5, 1.5]]


def test_a_cost_that_is_no_number_is_refused():
    drawing = sampler(costs=lambda instance, answers: np.full(len(answers), np.nan))
    with pytest.raises(InputError, match=r"cost: expected a finite number, got nan for the answer"):
        drawing.sample(batch_of(), 2, seed=1)
