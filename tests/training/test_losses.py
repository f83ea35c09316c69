"""Compare the losses of each kind of answer with sums over right tokens, in plain loops."""

from itertools import permutations
from math import exp, log

import numpy as np
import pytest
import torch

from ptrnet import models, tasks
from ptrnet.data.batches import batch_of
from ptrnet.masks import gather_tokens, length_mask
from ptrnet.solver import Solver
from ptrnet.training.losses import cut_losses, gain_losses, losses
from ptrnet.types import Dataset, Example, ranking

STANDARD = {"center": (0.0, 0.0), "spread": (1.0, 1.0)}


@pytest.fixture
def scored():
    """Return a task of a kind, and a network that scores elements once."""

    def build(kind, model="set-ptr-net"):
        torch.manual_seed(3)
        task = tasks.get("custom", kind=kind, **STANDARD)
        settings = {"answer": task.facts.answer} if model == "set-ptr-net" else {}
        return task, models.build(model, 2, 1, hidden_size=8, **settings).double().eval()

    return build


def examples_of(kind):
    """Return instances of 1 to 5 elements, with ties, empty sets, one element and all elements."""
    rng = np.random.default_rng(0)
    truths = {
        "set": [[1, 3], [], [0], [0, 1, 2, 3, 4]],
        "choice": [[2], [3], [0], [4]],
        "grades": [[0, 2, 2, 1], [0, 0, 0, 0], [3], [4, 0, 1, 1, 1]],
        "permutation": [[1, 3, 2, 0], [0, 1, 2, 3], [0], [4, 2, 0, 1, 3]],
    }[kind]
    for truth, n in zip(truths, (4, 4, 1, 5), strict=True):
        inputs = rng.normal(size=(n, 2))
        if kind == "grades":
            grades = np.array(truth, float)
            yield Example(inputs, ranking(grades), grades=grades)
        else:
            yield Example(inputs, np.array(truth, np.int64))


def in_double(batch):
    return batch._replace(inputs=batch.inputs.double())


def weights_of(model, example):
    """Return exp(score) of END, and of each element."""
    inputs = torch.from_numpy(example.inputs).float().double()[None]
    end, *elements = model.encode(inputs).scores[0].exp().tolist()
    return end, elements


def expected_terms(kind, model, example):
    """Return -log p(a right token) of each step, given the example's earlier answers."""
    end, weights = weights_of(model, example)
    remaining, terms = set(range(len(weights))), []
    for k, target in enumerate(example.outputs.tolist()):
        right = {target}
        if kind == "set":
            right = remaining & set(example.outputs[k:].tolist())
        if kind == "grades":
            right = {i for i in remaining if example.grades[i] == example.grades[target]}
        total = sum(weights[i] for i in remaining) + (end if kind == "set" else 0)
        terms.append(-log(sum(weights[i] for i in right) / total))
        remaining -= {target}
    rest = sum(weights[i] for i in remaining) if kind == "set" else 0
    return [*terms, -log(end / (end + rest))]


@pytest.mark.parametrize("kind", ["set", "choice", "grades", "permutation"])
def test_the_loss_sums_the_probabilities_of_all_right_tokens(scored, kind):
    task, model = scored(kind)
    examples = list(examples_of(kind))
    terms = [expected_terms(kind, model, example) for example in examples]
    loss = losses(model, in_double(batch_of(Dataset.of(examples), task)))[0].mean()
    assert loss.item() == pytest.approx(np.mean(np.concatenate(terms)), rel=1e-6)
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    log_likelihoods = Solver(model, task, {}).log_likelihoods(examples)
    np.testing.assert_allclose(log_likelihoods, [-sum(of) for of in terms], rtol=1e-6, atol=1e-12)


def test_the_probabilities_of_choices_sum_to_one(scored):
    task, model = scored("choice")
    (instance, _), *_ = examples_of("choice")
    pairs = [(instance, np.array([k])) for k in range(len(instance))]
    assert np.exp(Solver(model, task, {}).log_likelihoods(pairs)).sum() == pytest.approx(1)


def test_orders_have_the_probability_of_plackett_and_luce(scored):
    task, model = scored("permutation")
    (instance, _), *_ = examples_of("permutation")
    orders = [np.array(order) for order in permutations(range(4))]
    pairs = [(instance, order) for order in orders]
    probabilities = np.exp(Solver(model, task, {}).log_likelihoods(pairs))
    assert probabilities.sum() == pytest.approx(1)
    likeliest = Solver(model.float(), task, {}).solve(instance)
    assert orders[int(probabilities.argmax())].tolist() == likeliest.tolist()


@pytest.mark.parametrize("model", ["ptr-net", "transformer-ptr-net", "set-ptr-net"])
def test_without_ties_the_loss_is_the_likelihood_bit_by_bit(scored, model):
    task, network = scored("permutation", model)
    batch = in_double(batch_of(Dataset.of(examples_of("permutation")), task))
    assert batch.grades is None
    log_probs = network.log_probs(*batch[:4])
    real = length_mask(batch.target_lengths, batch.targets.shape[1])
    likelihood = torch.where(real, gather_tokens(log_probs, batch.targets), 0)
    per_token = real.sum() / len(real)
    assert torch.equal(losses(network, batch)[0], -likelihood.sum(1) / per_token)


def test_grades_without_ties_have_the_loss_of_their_order(scored):
    """Without ties, grades contain the same information as their order."""
    task, model = scored("grades")
    examples = [
        Example(inputs, outputs, grades=-np.argsort(outputs).astype(float))
        for inputs, outputs in examples_of("permutation")
    ]
    graded = losses(model, in_double(batch_of(Dataset.of(examples), task)))
    orders = [example.replace(grades=None) for example in examples]
    ranked = losses(model, in_double(batch_of(Dataset.of(orders), task)))
    torch.testing.assert_close(graded, ranked)


@pytest.mark.parametrize("model", ["set-ptr-net", "transformer-ptr-net"])
def test_an_answer_is_right_if_greedy_decoding_gives_one_of_the_right_ones(scored, model):
    for kind in ("set", "choice", "grades"):
        task, network = scored(kind, model)
        rng = np.random.default_rng(1)
        examples = []
        for n in rng.integers(1, 4, 200):
            grades = rng.integers(0, 2, n).astype(float)
            outputs = {"set": np.flatnonzero(grades), "choice": rng.integers(n, size=1)}
            outputs = outputs.get(kind, ranking(grades))
            given = grades if kind == "grades" else None
            examples.append(Example(rng.normal(size=(n, 2)), outputs, grades=given))
        network = network.float()
        _, right = losses(network, batch_of(Dataset.of(examples), task))
        decoded = Solver(network, task, {}).predict(examples, constrained=False)
        accuracy = task.score(examples, [example.outputs for example in decoded])["accuracy"]
        if model == "set-ptr-net":
            assert right.tolist() == accuracy.tolist()
            if kind == "grades":
                batch = batch_of(Dataset.of(examples), task)
                assert gain_losses(network, batch)[1].tolist() == right.tolist()
                nothing = batch._replace(target_lengths=0 * batch.target_lengths)
                assert gain_losses(network, nothing)[1].all() and losses(network, nothing)[1].all()
        assert accuracy.any() and not accuracy.all()


def test_gains_are_the_shares_of_the_first_token(scored):
    task, model = scored("grades")
    examples = list(examples_of("grades"))
    of_each, right = gain_losses(model, in_double(batch_of(Dataset.of(examples), task)))
    loss = of_each.mean()
    terms = []
    for example in examples:
        _, weights = weights_of(model, example)
        gains = [2**grade - 1 for grade in example.grades.tolist()]
        if sum(gains):
            shares = [gain / sum(gains) for gain in gains]
            terms.append(
                -sum(s * log(w / sum(weights)) for s, w in zip(shares, weights, strict=True))
            )
    assert len(terms) == 3  # one instance has no gains
    assert loss.item() == pytest.approx(np.mean(terms), rel=1e-6)
    assert right.tolist()[1:3] == [True, True]  # all grades are equal


def test_equal_scores_and_nan_are_not_right():
    class Scores:
        def log_probs(self, inputs, lengths, targets):
            return torch.nn.functional.pad(inputs[..., 0], (1, 0))[:, None]

    task = tasks.get("custom", kind="grades", center=(0.0,), spread=(1.0,))
    grades = np.array([2.0, 1.0, 1.0])
    for numbers, expected in (
        ([3, 1, 2], True),
        ([3, 1, 1], True),  # of equal grades
        ([2, 1, 2], False),
        ([1, 3, 0], False),
        ([np.nan] * 3, False),
    ):
        example = Example(np.zeros((3, 1)), ranking(grades), grades=grades)
        batch = batch_of(Dataset.of([example]), task)
        batch = batch._replace(inputs=torch.tensor(numbers).float()[None, :, None])
        assert gain_losses(Scores(), batch)[1].tolist() == [expected]


def test_gains_without_a_relevant_element_have_loss_zero(scored):
    task, model = scored("grades")
    nothing = [Example(np.ones((3, 2)), np.arange(3), grades=np.zeros(3))]
    loss = gain_losses(model, in_double(batch_of(Dataset.of(nothing), task)))[0].mean()
    loss.backward()
    assert loss.item() == 0
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_own_gains_are_the_target_of_the_first_token(scored):
    task, model = scored("grades")
    grades = np.array([2.0, 1.0, 0.0])
    example = Example(np.eye(3)[:, :2], ranking(grades), grades=grades)
    loss, _ = gain_losses(model, in_double(batch_of(Dataset.of([example]), task)), [0, 1, 9])
    _, weights = weights_of(model, example)
    first, second, _ = (log(w / sum(weights)) for w in weights)
    assert loss.item() == pytest.approx(-(9 * first + second) / 10, rel=1e-6)


def test_large_grades_have_finite_gains(scored):
    task, model = scored("grades")
    grades = np.array([2000.0, 1999.0, -5.0])
    example = Example(np.eye(3)[:, :2], ranking(grades), grades=grades)
    loss, _ = gain_losses(model, in_double(batch_of(Dataset.of([example]), task)))
    _, weights = weights_of(model, example)
    first, second, _ = (log(w / sum(weights)) for w in weights)
    assert loss.item() == pytest.approx(-(2 * first + second) / 3, rel=1e-6)
    assert exp(first) < 1


@pytest.mark.parametrize("kind", ["set", "choice", "grades", "permutation", "gains", "cuts"])
def test_weights_of_answers_count_how_often_they_occur(scored, kind):
    """The loss and its gradient equal those of a batch with repeated answers."""
    counts = [2, 0, 3, 1]
    of_batch = {"gains": gain_losses, "cuts": cut_losses}.get(kind, losses)
    kind = {"gains": "grades", "cuts": "permutation"}.get(kind, kind)
    task, model = scored(kind, "ptr-net" if of_batch is cut_losses else "set-ptr-net")
    examples = list(examples_of(kind))
    repeated = [e for e, count in zip(examples, counts, strict=True) for _ in range(count)]

    def slopes(rows):
        batch = in_double(batch_of(Dataset.of(rows), task))
        if of_batch is cut_losses:
            batch = batch._replace(num_known=1)
        loss = of_batch(model, batch)[0].mean()
        of_weights = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
        return [loss, *(slope for slope in of_weights if slope is not None)]

    expected = slopes(repeated)
    for scale in (1, 0.5, 1e-20, 1e20):  # the loss of a batch does not depend on the scale
        weights = [count * scale for count in counts]
        rows = [e.replace(weight=w) for e, w in zip(examples, weights, strict=True)]
        torch.testing.assert_close(slopes(rows), expected)
    nothing = slopes([example.replace(weight=0.0) for example in examples])
    assert not any(tensor.any() for tensor in nothing)
