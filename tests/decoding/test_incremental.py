"""Incremental decoding against a plain loop, and with an inner decoder that is always right."""

import numpy as np
import pytest
import torch

from ptrnet.decoding import Beam, Decoder, Greedy, Hypotheses, Incremental, Sample
from ptrnet.errors import InputError
from ptrnet.labellers.monotone_chain import label


class Oracle(Decoder):
    """A decoder that answers with the true hull."""

    name, size = "oracle", 1

    def decode(self, model, inputs, lengths, max_lengths, constraint=None):
        rows = []
        for points, n in zip(inputs, lengths.tolist(), strict=True):
            rows.append(label(points[None, :n].double().numpy())[0] + 1)
        tokens = torch.zeros(len(rows), int(max(map(len, rows))) + 1, dtype=torch.int64)
        for row, hull in zip(tokens, rows, strict=True):
            row[: len(hull)] = torch.from_numpy(hull)
        counts = torch.tensor([[len(r)] for r in rows])
        return Hypotheses(tokens[:, None], counts, torch.zeros(len(rows), 1))


@pytest.mark.parametrize("window", [1, 3, 7, 50])
def test_with_a_perfect_inner_decoder_the_answer_is_the_hull(small, window):
    solver = small()
    instances = [np.random.default_rng(n).random((n, 2)) for n in (1, 2, 3, 9, 20, 41, 20)]
    answers = solver.solve(instances, Incremental(window, Oracle()))
    for points, answer in zip(instances, answers, strict=True):
        truth = label(points.astype(np.float32).astype(float)[None])[0]
        assert answer.tolist() == truth.tolist()


@pytest.mark.parametrize("inner", [Greedy(), Beam(3), Sample(2, seed=0)], ids=lambda d: d.name)
@pytest.mark.parametrize("closed", [False, True])
def test_incremental_equals_a_plain_loop_over_groups(small, inner, closed):
    solver = small(scale=8.0, closed=closed, start="lower-left")
    points = np.random.default_rng(1).random((14, 2))
    answer = solver.solve(points, Incremental(4, inner))
    members = np.empty(0, np.int64)
    for start in range(0, 14, 4):
        members = np.sort(np.append(members, np.arange(start, min(start + 4, 14))))
        expected = members[solver.solve(points[members], inner)]
        members = np.unique(expected)
    # The solver rotates the best of several samples to its canonical start, but it does not see
    # the samples of the groups.
    same = sorted if inner.name == "sample" else list
    assert same(answer.tolist()) == same(expected.tolist())


@pytest.mark.parametrize("window", [2**63, 10**40])
def test_a_window_beyond_int64_covers_the_whole_instance(small, window):
    """torch cannot represent such a window."""
    points = np.random.default_rng(0).random((9, 2))
    assert (small().solve(points, Incremental(window)) == small().solve(points)).all()


def test_a_window_of_the_whole_instance_equals_plain_decoding(small):
    solver = small(scale=8.0)
    instances = list(np.random.default_rng(2).random((5, 9, 2)))
    answers, plain = solver.solve(instances, Incremental(9)), solver.solve(instances)
    assert [a.tolist() for a in answers] == [a.tolist() for a in plain]


@pytest.mark.parametrize("task", ["sort", "tsp", "delaunay"])
def test_tasks_that_are_not_decomposable_are_refused(small, task):
    solver = small(task)
    with pytest.raises(InputError, match=f"incremental decoding cannot be used with task {task}"):
        solver.solve([solver.task.sample(np.random.default_rng(0), 1, 5)[0]], Incremental())


def test_an_invalid_window_is_refused():
    with pytest.raises(InputError, match="window"):
        Incremental(0)
