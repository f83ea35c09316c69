"""The conditional logit of choices, and its share of a model's probabilities."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

import ptrnet
from ptrnet import models, tasks
from ptrnet.solver import Solver
from ptrnet.training.linear_scores import fit_logit
from ptrnet.training.sets import Sets
from ptrnet.types import Dataset, Example

WEIGHTS = np.array([1.5, -2.0, 0.0])


def choices(count, seed, utility=lambda x: x @ WEIGHTS):
    """Draw choices by a logit among 2 to 5 elements."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x = rng.normal(size=(rng.integers(2, 6), 3))
        noise = rng.gumbel(size=len(x))
        yield x, np.array([int((utility(x) + noise).argmax())])


def fitted(examples, task):
    return fit_logit(Sets.of(Dataset.of(examples), task))


@pytest.fixture
def choice_task():
    return tasks.get("custom", kind="choice", center=(0.0,) * 3, spread=(1.0,) * 3)


def test_the_logit_finds_the_weights_of_choices(choice_task):
    examples = [Example(*pair) for pair in choices(4000, seed=0)]
    np.testing.assert_allclose(fitted(examples, choice_task), WEIGHTS, atol=0.12)


def test_the_logit_of_weights_is_that_of_repeated_choices(choice_task):
    examples = [Example(*pair) for pair in choices(100, seed=0)]
    counts = np.random.default_rng(0).integers(0, 4, len(examples))
    weighted = [e.replace(weight=float(n)) for e, n in zip(examples, counts, strict=True)]
    repeated = [e for e, n in zip(examples, counts, strict=True) for _ in range(n)]
    expected = fitted(repeated, choice_task)
    np.testing.assert_allclose(fitted(weighted, choice_task), expected, rtol=1e-7)
    assert abs(fitted(examples, choice_task) - expected).max() > 0.01


def test_probabilities_are_the_mixture(choice_task):
    torch.manual_seed(0)
    network = models.build("set-ptr-net", 3, 1, hidden_size=8, answer="one").double().eval()
    pairs = list(choices(20, seed=1))

    def probabilities(share):
        network.logit_share.fill_(share)
        return [np.exp(s) for s in Solver(network, choice_task, {}).scores([x for x, _ in pairs])]

    network.logit_weights.copy_(torch.tensor(WEIGHTS))
    own, mixed, logit = (probabilities(share) for share in (0, 0.25, 1))
    for (x, _), of_network, of_both, of_logit in zip(pairs, own, mixed, logit, strict=True):
        np.testing.assert_allclose(of_logit, np.exp(log_softmax(x @ WEIGHTS)), rtol=1e-6)
        np.testing.assert_allclose(of_both, 0.75 * of_network + 0.25 * of_logit, rtol=1e-6)


def test_few_choices_by_a_logit_are_predicted_nearly_as_well_as_by_the_logit():
    """The network alone overfits 200 examples by about 0.1."""
    model = ptrnet.fit(choices(200, seed=2), "choice", seed=1, steps=150, ensemble=2, spaces=0)
    new = list(choices(2000, seed=3))
    scores = model.scores([x for x, _ in new])
    actual = np.mean([s[y[0]] for s, (_, y) in zip(scores, new, strict=True)])
    expected = np.mean([log_softmax(x @ WEIGHTS)[y[0]] for x, y in new])
    assert expected - 0.03 < actual < expected
    assert model.model.networks()[0].logit_share > 0.5


def test_choices_that_no_logit_predicts_have_hardly_any_share_of_it():
    """Utilities depend on the distance from 1, so no direction is better than another."""
    pairs = choices(600, 4, lambda x: -8 * np.abs(np.linalg.norm(x, axis=1) - 1))
    model = ptrnet.fit(pairs, "choice", seed=1, hidden_size=16, steps=200, ensemble=2, spaces=0)
    assert model.model.networks()[0].logit_share < 0.2


def test_a_training_that_starts_with_other_weights_forgets_their_logit(tmp_path):
    """The logit fits the examples of the other training, so validation must not use it."""
    few = {"ensemble": 1, "hidden_size": 8, "spaces": 0}
    first = ptrnet.fit(choices(200, seed=2), "choice", output=tmp_path / "first", steps=2, **few)
    assert first.model.logit_share > 0.5
    again = ptrnet.fit(
        choices(40, seed=5),
        "choice",
        weights=str(tmp_path / "first"),
        steps=1,
        valid_share=0,
        **few,
    )
    assert again.model.logit_share == 0
