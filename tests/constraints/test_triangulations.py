"""`Apexes` against a plain queue, on all sequences of few elements and on random walks."""

import numpy as np
import pytest
import torch

from ptrnet import tasks
from ptrnet.constraints import Apexes
from ptrnet.constraints.triangulations import OpenEdges

END, NONE = 0, 1  # so token 2 is the first element
TASK = tasks.get("delaunay", sequence="apexes")


class PlainQueue:
    """The queue, sides and triangles of a prefix, as plain lists and sets."""

    def __init__(self, prefix):
        self.prefix, self.queue, self.sides, self.triangles = prefix, [], set(), set()
        if len(prefix) < 2:
            return
        a, b, *rest = prefix
        self.queue, self.outside = [(a, b)], {(b, a)}
        for token in rest:
            u, v = self.queue.pop(0)
            if token == NONE:
                self.outside.add((u, v))
                continue
            self.triangles.add(frozenset((u, v, token)))
            self.sides |= {(u, v), (v, token), (token, u)}
            joining = [s for s in ((v, token), (token, u)) if s not in self.queue]
            self.queue = [s for s in self.queue if s not in ((v, token), (token, u))]
            self.queue += [(end, start) for start, end in joining]

    def allowed(self, n):
        elements = set(range(2, n + 2))
        if len(self.prefix) < 2:
            return elements - set(self.prefix)
        if not self.queue:
            return {END}
        if len(self.triangles) == max(1, 2 * n - 5):
            return {NONE}
        u, v = self.queue[0]
        taken = self.sides | self.outside
        apexes = {
            c
            for c in elements - {u, v}
            if not {(v, c), (c, u)} & taken and frozenset((u, v, c)) not in self.triangles
        }
        return apexes | ({NONE} if self.triangles else set())


def check(prefixes, state, n):
    """Compare allowed tokens and the front edge with those of the plain queue, for all prefixes."""
    allowed, (first, tail, head) = Apexes().mask(state), state.edges.front()
    for k, prefix in enumerate(prefixes):
        plain = PlainQueue(prefix)
        assert set(torch.nonzero(allowed[0, k])[:, 0].tolist()) == plain.allowed(n), prefix
        front = (
            plain.queue[0] if plain.queue else (*prefix, 0, 0)[:2] if len(prefix) < 2 else (0, 0)
        )
        assert (tail[0, k].item(), head[0, k].item()) == front
        assert first[0, k].item() == (prefix[0] if prefix else 0)
    return allowed[0]


def check_answer(tokens, n):
    answer = TASK.from_tokens(np.array(tokens))
    assert TASK.answer_error(n, answer) is None
    assert len(tokens) <= TASK.max_length(n)
    assert {frozenset((t + 2).tolist()) for t in answer} == PlainQueue(tokens).triangles


@pytest.mark.parametrize(("n", "expected"), [(3, 1), (4, 4), (5, 23)])
def test_allowed_sequences_are_those_of_a_plain_queue(n, expected):
    """Elements differ only by number, so new ones are taken in increasing order (`is_next`)."""
    prefixes, count = [()], 0
    state = Apexes().begin(torch.zeros(1, n + 3, 2), torch.tensor([n]))
    while prefixes:
        allowed = check(prefixes, state, n)
        for k in torch.nonzero(allowed[:, END])[:, 0].tolist():
            check_answer(prefixes[k], n)
            count += 1
        next_new = torch.tensor([max((1, *prefix)) + 1 for prefix in prefixes])
        is_next = torch.arange(allowed.shape[1]) <= next_new[:, None]
        parents, tokens = torch.nonzero((allowed & is_next)[:, 1:], as_tuple=True)
        state = Apexes().advance(state, parents[None], tokens[None] + 1)
        pairs = zip(parents.tolist(), tokens.tolist(), strict=True)
        prefixes = [(*prefixes[k], token + 1) for k, token in pairs]
    assert count == expected


@pytest.mark.parametrize("n", [5, 8, 12])
def test_random_walks_reach_an_end(n):
    torch.manual_seed(n)
    first = torch.randint(2, n + 2, (1, 40))
    prefixes, answers = [(token,) for token in first[0].tolist()], []
    state = Apexes().begin(torch.zeros(1, n + 1, 2), torch.tensor([n]))
    state = Apexes().advance(state, torch.zeros_like(first), first)
    while prefixes:
        allowed = check(prefixes, state, n)
        weights = allowed.float() * torch.tensor(
            [1.0, 0.5 * torch.rand(1).item()] + [1.0] * (n + 1)
        )
        tokens = torch.multinomial(weights, 1)[:, 0]
        extended = [(*p, t) for p, t in zip(prefixes, tokens.tolist(), strict=True)]
        answers += [prefix[:-1] for prefix in extended if prefix[-1] == END]
        parents = torch.nonzero(tokens != END)[:, 0]
        prefixes = [extended[k] for k in parents.tolist()]
        state = Apexes().advance(state, parents[None], tokens[parents][None])
    for tokens in answers:
        check_answer(tokens, n)
    # The constraint does not know coordinates, so some walks are longer than any triangulation.
    assert max(len(tokens) for tokens in answers) > 2 * n - 1


def test_only_none_is_allowed_after_the_maximum_number_of_triangles():
    n, tokens = 4, [2, 3, 4, 5, 5, 1, 1]
    state = Apexes().begin(torch.zeros(1, n, 2), torch.tensor([n]))
    zero = torch.zeros(1, 1, dtype=torch.int64)
    for token in tokens:
        allowed = Apexes().mask(state)[0, 0].tolist()
        assert allowed[token]
        if token == 1:
            assert sum(allowed) == 1
        state = Apexes().advance(state, zero, torch.tensor([[token]]))
    assert Apexes().mask(state)[0, 0].tolist() == [True] + [False] * (n + 1)


def test_queues_stay_consistent_for_arbitrary_tokens():
    """A model reads its queue even if the search is not constrained."""
    torch.manual_seed(1)
    tokens = torch.randint(0, 6, (50, 12))
    edges = OpenEdges.empty(tokens[:, :1])
    for i in range(tokens.shape[1]):
        edges = edges.append(tokens[:, i : i + 1])
        first, tail, head = edges.front()
        waits = edges.is_open.any(-1)
        assert ((head > 0) <= (tail > 0)).all() and ((tail > 0) <= (first > 0)).all()
        assert (waits | (tail == 0)).all()
