"""The compiled scores of frames against the formulas, which PyTorch computes in float64."""

import copy

import pytest
import torch

from ptrnet.kernels import frames as kernel
from ptrnet.models.parts.frames import EdgeFrames
from ptrnet.models.parts.open_edge_frames import OpenEdgeFrames

UNITS = 8


@pytest.fixture(params=[EdgeFrames, OpenEdgeFrames])
def frames(request):
    torch.manual_seed(3)
    return request.param(UNITS)


def arguments(frames, batch=3, prefixes=2, n=20, specials=2, seed=0, grid=None):
    """What `frames` is called with: random prefixes, also without elements; some padding."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(batch, prefixes, specials + n, generator=generator)
    scores[0, :, specials + n - n // 3 :] = -torch.inf
    points = torch.rand(batch, n, 2, generator=generator)
    if grid:
        points = (points * grid).round() / grid  # with duplicates, ties and collinear points
    ends = [torch.randint(0, n, (batch, prefixes), generator=generator) for _ in range(3)]
    ends = [torch.where(tokens < n // 3, 0, tokens + specials - 1) for tokens in ends]
    queries = torch.randn(batch, prefixes, UNITS, generator=generator)
    keys = frames.project_keys(torch.randn(batch, specials + n, UNITS, generator=generator))
    return scores, points, tuple(ends), queries, keys.detach()


def compiled(frames, scores, points, ends, queries, keys):
    rounds = [score.weights() for score in frames.looks]
    return kernel.frame_scores(
        scores, points, ends, frames.query(queries), keys, rounds, frames.is_open
    )


def in_float64(frames, scores, points, ends, queries, keys):
    exact = copy.deepcopy(frames).double()
    return exact(scores.double(), points.double(), ends, queries.double(), keys.double())


@pytest.mark.parametrize("n", [1, 3, 14, 30, 31, 70])
@pytest.mark.parametrize("grid", [None, 2, 8])
def test_scores_are_those_of_the_formulas(frames, n, grid):
    """On a grid a product that is not rounded would see a vector beside itself."""
    given = arguments(frames, n=n, grid=grid)
    with torch.no_grad():
        expected, plain = in_float64(frames, *given), frames(*given)
        scores = compiled(frames, *given)
    assert torch.equal(scores.isinf(), expected.isinf())
    real = expected.isfinite()
    own_error = (plain.double() - expected)[real].abs().max()
    torch.testing.assert_close(scores[real].double(), expected[real], atol=4 * own_error, rtol=1e-5)


def test_slices_are_computed_alike(frames):
    given = arguments(frames, batch=40, prefixes=3)
    with torch.no_grad():
        together = compiled(frames, *given)
        scores, points, ends, queries, keys = given
        for b in range(40):
            one = slice(b, b + 1)
            alone = compiled(
                frames,
                scores[one],
                points[one],
                tuple(tokens[one] for tokens in ends),
                queries[one],
                keys[:, one],
            )
            torch.testing.assert_close(alone, together[one])


def test_the_scores_before_stay(frames):
    given = arguments(frames)
    before = given[0].clone()
    with torch.no_grad():
        compiled(frames, *given)
    assert torch.equal(given[0], before)


@pytest.fixture
def calls(monkeypatch):
    """How often the kernel was called; nothing has been computed in this process."""
    numbers = []
    monkeypatch.setattr(kernel, "_seen", 0)
    monkeypatch.setattr(
        "ptrnet.models.parts.frames.frame_scores",
        lambda *arguments: numbers.append(1) or kernel.frame_scores(*arguments),
    )
    return numbers


def test_few_prefixes_do_not_load_it(frames, calls, monkeypatch):
    monkeypatch.setattr(kernel, "PREFIXES_BEFORE_LOADING", 10)
    few = arguments(frames, batch=1, prefixes=4)
    with torch.no_grad():
        for expected in (0, 0, 0, 1, 2):
            frames(*few)
            assert len(calls) == expected


def test_many_prefixes_load_it_at_once(frames, calls):
    with torch.no_grad():
        frames(*arguments(frames, batch=kernel.MIN_ROWS, prefixes=1))
    assert len(calls) == 1


def test_what_pytorch_follows_is_the_formulas(frames, calls):
    many = arguments(frames, batch=kernel.MIN_ROWS)
    frames(*many)
    with torch.no_grad():
        in_float64(frames, *many)
        torch.jit.trace(frames, many, check_trace=False)
    assert not calls
