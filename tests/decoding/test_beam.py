"""Beam search against brute force over every sequence."""

from itertools import product

import pytest
import torch

from ptrnet.constraints import ClosedSubset, Free, Permutation, Subset, Tour
from ptrnet.decoding import Beam, Greedy
from ptrnet.errors import InputError

CONSTRAINTS = {
    "free": None,
    "subset": Subset(),
    "closed": ClosedSubset(),
    "permutation": Permutation(),
    "tour": Tour(),
}


def allowed(constraint, n, sequence):
    """Whether a finished sequence (without END) obeys a constraint, in plain Python."""
    distinct = len(set(sequence)) == len(sequence)
    if constraint == "subset":
        return distinct and len(sequence) >= 1
    if constraint == "permutation":
        return distinct and len(sequence) == n
    if constraint == "tour":
        return distinct and len(sequence) == n and sequence[0] == 1
    if constraint == "closed":
        body = sequence[:-1]
        return len(body) >= 1 and len(set(body)) == len(body) and body[0] == sequence[-1]
    return len(sequence) >= 1


def best_by_brute_force(model, points, constraint, max_length):
    n = points.shape[1]
    scored = []
    for length in range(max_length + 1):
        for sequence in product(range(1, n + 1), repeat=length):
            if allowed(constraint, n, sequence):
                targets = torch.tensor([[*sequence, 0]])
                log_probs = model.log_probs(points, None, targets)[0]
                scored.append((float(log_probs.gather(1, targets[0][:, None]).sum()), sequence))
    return max(scored)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_of_all_prefixes_finds_the_brute_force_best(small, constraint, seed):
    solver = small(seed=seed, scale=12.0)  # large weights make answers differ in probability
    n = 3
    max_length = 4 if constraint == "closed" else 3
    points = torch.rand(1, n, 2)
    with torch.no_grad():
        score, sequence = best_by_brute_force(solver.model, points, constraint, max_length)
    hypotheses = Beam(300).decode(  # more than the sequences of 4 tokens out of 4: 4^4 = 256
        solver.model, points, torch.tensor([n]), torch.tensor([max_length]), CONSTRAINTS[constraint]
    )
    assert tuple(hypotheses.tokens[0, 0, : hypotheses.lengths[0, 0]].tolist()) == sequence
    assert float(hypotheses.log_probs[0, 0]) == pytest.approx(score, abs=1e-4)


def test_greedy_takes_the_argmax_of_each_step(small):
    solver = small(scale=10.0)
    points = torch.rand(6, 5, 2)
    lengths, max_lengths = torch.full((6,), 5), torch.full((6,), 7)
    hypotheses = Greedy().decode(solver.model, points, lengths, max_lengths)
    for b in range(6):
        tokens = hypotheses.tokens[b, 0, : hypotheses.lengths[b, 0]].tolist()
        targets = torch.tensor([[*tokens, 0]])
        with torch.no_grad():
            best = solver.model.log_probs(points[b : b + 1], None, targets)[0].argmax(-1)
        steps = len(tokens) + (len(tokens) < 7)  # a full answer ends by itself
        best[0] = targets[0, 0]  # END may be likelier, but an answer has at least one token
        assert best[:steps].tolist() == targets[0, :steps].tolist() and tokens


def test_an_answer_is_never_longer_than_allowed(small):
    solver = small(scale=10.0)
    model = solver.model
    with torch.no_grad():  # give END the lowest score that there is, -sum |v|
        lowest = torch.linalg.solve(model.key.weight, -20 * model.v.sign())
        model.special_states.copy_(lowest[None])
    points = torch.rand(8, 6, 2)
    max_lengths = torch.arange(8)
    hypotheses = Beam(3).decode(solver.model, points, torch.full((8,), 6), max_lengths)
    assert torch.equal(hypotheses.lengths[:, 0], max_lengths)


def test_wider_beams_find_likelier_answers_on_average(small):
    """A wider beam may lose on one instance, so the test sums over fifty."""
    solver = small(scale=10.0)
    points, n = torch.rand(50, 6, 2), torch.full((50,), 6)
    totals = [
        Beam(size).decode(solver.model, points, n, n, Subset()).log_probs.sum().item()
        for size in (1, 4, 64)
    ]
    assert totals[0] < totals[1] <= totals[2] + 1e-4


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_an_invalid_beam_size_is_refused(size):
    with pytest.raises(InputError, match="size: expected a whole number of 1 or more"):
        Beam(size)


def test_no_constraint_equals_free(small):
    solver = small(scale=10.0)
    points, n = torch.rand(5, 4, 2), torch.tensor([4, 2, 3, 4, 1])
    a = Beam(3).decode(solver.model, points, n, n)
    b = Beam(3).decode(solver.model, points, n, n, Free())
    assert torch.equal(a.tokens, b.tokens)
