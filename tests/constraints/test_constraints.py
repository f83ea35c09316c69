"""Compare every constraint with brute force: a plain rule says which sequences it must allow."""

from itertools import product

import pytest
import torch

from ptrnet.constraints import ClosedSubset, Free, Permutation, Subset, Tour, Triangles

N, PADDING, STEPS = 4, 2, 5


def distinct(sequence):
    return len(set(sequence)) == len(sequence)


def is_triangles(sequence):
    triples = [sequence[k : k + 3] for k in range(0, len(sequence), 3)]
    return bool(triples) and all(len(t) == 3 and sorted(set(t)) == [*t] for t in triples)


CONSTRAINTS = {
    "free": (Free(), lambda s: len(s) >= 1),
    "free, may be empty": (Free(0), lambda s: True),
    "subset": (Subset(), lambda s: len(s) >= 1 and distinct(s)),
    "subset, may be empty": (Subset(0), distinct),
    "permutation": (Permutation(), lambda s: len(s) == N and distinct(s)),
    "tour": (Tour(), lambda s: len(s) == N and distinct(s) and s[0] == 1),
    "closed": (ClosedSubset(), lambda s: len(s) >= 2 and distinct(s[1:]) and s[0] == s[-1]),
    "triangles": (Triangles(1), is_triangles),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_allowed_answers_are_those_that_obey_the_rule(name):
    """The test extends all prefixes of one length at once, as prefixes of one instance."""
    constraint, obeys = CONSTRAINTS[name]
    prefixes, answers = [()], set()
    state = constraint.begin(torch.zeros(1, N + PADDING, 2), torch.tensor([N]))
    for _ in range(STEPS + 1):
        allowed = constraint.mask(state)[0]
        assert allowed.shape == (len(prefixes), 1 + N + PADDING) and not allowed[:, 1 + N :].any()
        answers |= {prefixes[k] for k in torch.nonzero(allowed[:, 0])[:, 0].tolist()}
        extensions = torch.nonzero(allowed[:, 1:])
        # A search reorders its prefixes, so the state has to follow `parents` in any order.
        extensions = torch.cat([extensions[1::2], extensions[::2]])
        parents, tokens = extensions[:, 0][None], extensions[:, 1][None] + 1
        state = constraint.advance(state, parents, tokens)
        prefixes = [
            (*prefixes[k], token)
            for k, token in zip(parents[0].tolist(), tokens[0].tolist(), strict=True)
        ]
    every = [s for m in range(STEPS + 1) for s in product(range(1, N + 1), repeat=m)]
    assert answers == {s for s in every if obeys(s)}
