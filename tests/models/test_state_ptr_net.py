"""The network of problems: distributions over allowed elements, alone and in a batch."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from ptrnet import Beam, Sample, Solver, models, tasks
from ptrnet.data.batches import pad_instances
from ptrnet.errors import ModelError
from ptrnet.models import state_ptr_net
from ptrnet.problems import names
from ptrnet.types import Example

EVERY = pytest.mark.parametrize("name", names())


def network(name):
    torch.manual_seed(3)
    task = tasks.get(name)
    settings = models.settings_of(models.STATES, hidden_size=16, heads=2, encoder_layers=2)
    return task, models.kind(models.STATES).for_task(task, settings).eval()


def instances(task, n, count, seed=0):
    return list(task.sample(np.random.default_rng(seed), count, n))


@EVERY
def test_step_by_step_equals_all_steps_at_once(name):
    task, model = network(name)
    inputs, lengths = pad_instances(instances(task, 6, 4), is_exact=True)
    tokens = Sample(1, seed=1).decode(model, inputs, lengths, lengths * 100, task).tokens[:, 0]
    tokens = torch.nn.functional.pad(tokens, (0, 1))
    together = model.log_probs(inputs, lengths, tokens)
    encoded = model.encode(inputs, lengths)
    state, last = encoded.state, torch.zeros(4, 1, dtype=torch.int64)
    ended = torch.zeros(4, dtype=torch.bool)
    for i in range(tokens.shape[1]):
        row, state = model.step(encoded, state, last)
        torch.testing.assert_close(row[~ended, 0], together[~ended, i])
        probabilities = row[~ended, 0].exp()
        torch.testing.assert_close(probabilities.sum(-1), torch.ones(len(probabilities)))
        last = tokens[:, i : i + 1]
        ended |= last[:, 0] == 0


@EVERY
def test_a_float64_model_gives_float64_probabilities(name):
    task, model = network(name)
    inputs, lengths = pad_instances(instances(task, 4, 2) + instances(task, 6, 2), is_exact=True)
    first = torch.zeros(4, 1, dtype=torch.int64)
    expected = model.log_probs(inputs, lengths, first).exp()
    model.double()
    actual = model.log_probs(inputs, lengths, first).exp()
    assert actual.dtype == torch.float64
    torch.testing.assert_close(actual.float(), expected)
    encoded = model.encode(inputs[2:], lengths[2:])
    torch.testing.assert_close(model.step(encoded, encoded.state, first[2:])[0].exp(), actual[2:])


@EVERY
def test_known_answers_of_several_sizes_are_as_likely_alone(name):
    task, model = network(name)
    solver = Solver(model, task)
    many = instances(task, 4, 2) + instances(task, 7, 2)
    pairs = list(zip(many, solver.solve(many, Sample(1, seed=0)), strict=True))
    together = solver.log_likelihoods(pairs)
    alone = [solver.log_likelihoods(pair) for pair in pairs]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_a_batch_to_decode_has_one_size():
    task, model = network("knapsack")
    with pytest.raises(ModelError, match="one size"):
        model.encode(*pad_instances(instances(task, 3, 1) + instances(task, 5, 1), True))


@EVERY
def test_answers_are_valid_and_do_not_depend_on_the_batch(name):
    task, model = network(name)
    solver = Solver(model, task)
    many = [inputs for n in (3, 6, 4, 6) for inputs in instances(task, n, 1, seed=n)]
    for decoder in (Beam(3), Sample(4, seed=5)):
        answers = solver.solve(many, decoder)
        for inputs, answer in zip(many, answers, strict=True):
            assert task.problem.answer_errors(inputs, [answer]) == [None]
            np.testing.assert_array_equal(solver.solve(inputs, decoder), answer)


@EVERY
def test_wider_beams_and_more_samples_cost_no_more(name):
    task, model = network(name)
    solver = Solver(model, task)
    many = instances(task, 6, 4)
    costs = {
        size: [
            task.costs(Example(inputs), [answer])[0]
            for inputs, answer in zip(
                many, solver.solve(many, Sample(size, seed=5), improve=False), strict=True
            )
        ]
        for size in (1, 4, 16)
    }
    for fewer, more in pairwise(costs.values()):
        assert (np.array(more) <= np.array(fewer) + 1e-9).all()


@EVERY
def test_model_survives_its_folder(name, tmp_path):
    task, model = network(name)
    solver = Solver(model, task)
    solver.save_pretrained(tmp_path / "model")
    again = Solver.from_pretrained(tmp_path / "model")
    (inputs,) = instances(task, 5, 1)
    np.testing.assert_array_equal(again.solve(inputs), solver.solve(inputs))
    assert again.answer(inputs).log_prob == pytest.approx(solver.answer(inputs).log_prob, abs=1e-5)


@EVERY
def test_attention_points_at_elements(name):
    task, model = network(name)
    solver = Solver(model, task)
    (inputs,) = instances(task, 5, 1)
    probabilities, tokens = solver.attention(inputs)
    assert probabilities.shape == (len(tokens), 6)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
    chosen = [token - 1 for token in tokens if token]
    assert chosen == [
        element for element in solver.solve(inputs) if element or not task.facts.fixed
    ]


@EVERY
def test_problems_written_in_numpy_have_the_same_probabilities(name, monkeypatch):
    """The built-in problems also take NumPy's arrays, so they can play a user's problem."""
    task, model = network(name)
    inputs, lengths = pad_instances(instances(task, 6, 3), is_exact=True)
    decoder, constraint, max_lengths = Sample(4, seed=1), task, lengths * 20
    decoded = []
    for in_torch in (True, False):
        monkeypatch.setattr(type(task.problem), "array_api", in_torch)
        decoded.append(decoder.decode(model, inputs, lengths, max_lengths, constraint))
    torch.testing.assert_close(decoded[1].log_probs, decoded[0].log_probs)
    assert (decoded[1].tokens == decoded[0].tokens).all()


@EVERY
def test_samples_of_a_batch_have_their_single_probabilities(name, monkeypatch):
    """Rows are encoded in chunks, and equal rows once. Alone, each row is a chunk of its own."""
    task, model = network(name)
    inputs, lengths = pad_instances(instances(task, 6, 3), is_exact=True)
    monkeypatch.setattr(state_ptr_net, "MAX_POSITIONS", 20)
    decoder, constraint = Sample(3, seed=1), task
    sampled = decoder.decode(model, inputs, lengths, lengths * 100, constraint)
    tokens = torch.nn.functional.pad(sampled.tokens, (0, 1))
    for b in range(3):
        for k in range(3):
            steps = int(sampled.lengths[b, k]) + 1
            answer = tokens[b, k : k + 1, :steps]
            alone = model.log_probs(inputs[b : b + 1], None, answer).gather(2, answer[..., None])
            torch.testing.assert_close(
                alone.sum(), sampled.log_probs[b, k].to(alone), atol=1e-4, rtol=0
            )
