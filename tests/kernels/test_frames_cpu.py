"""The compiled scores of frames against the formulas, which PyTorch computes in float64."""

import copy

import pytest
import torch

from ptrnet.errors import ShapeError
from ptrnet.models.parts.frames import EdgeFrames

UNITS = 8


@pytest.fixture(params=[False, True], ids=["last edge", "open edge"])
def frames(request):
    torch.manual_seed(3)
    return EdgeFrames(UNITS, is_open=request.param)


def arguments(frames, batch=3, prefixes=2, n=20, num_specials=2, seed=0, grid=None):
    """Make arguments of `frames`: random prefixes, some without elements, and some padding."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(batch, prefixes, num_specials + n, generator=generator)
    scores[0, :, num_specials + n - n // 3 :] = -torch.inf
    points = torch.rand(batch, n, 2, generator=generator)
    if grid:
        points = (points * grid).round() / grid  # with duplicates, ties and collinear points
    ends = [torch.randint(0, n, (batch, prefixes), generator=generator) for _ in range(3)]
    ends = [torch.where(tokens < n // 3, 0, tokens + num_specials - 1) for tokens in ends]
    queries = torch.randn(batch, prefixes, UNITS, generator=generator)
    keys = frames.project_keys(torch.randn(batch, num_specials + n, UNITS, generator=generator))
    return scores, tuple(ends), queries, points, keys.detach()


def compiled(frames, scores, ends, queries, points, keys):
    return frames.compiled(points, keys)(scores, ends, frames.query(queries))


def in_float64(frames, scores, ends, queries, points, keys):
    exact = copy.deepcopy(frames).double()
    return exact(scores.double(), ends, queries.double(), points.double(), keys.double())


@pytest.mark.parametrize("n", [1, 3, 14, 30, 31, 70])
@pytest.mark.parametrize("grid", [None, 2, 8])
def test_compiled_scores_equal_the_formulas(frames, n, grid):
    """On a grid, a product without rounding (FMA) would give a vector an angle to itself.

    Open edges of a grid have cross products of 0. float32 may give other values, which the
    logarithms enlarge. So compare the largest errors of several instances, those of the kernel and
    those of the plain formula in float32.
    """
    errors = []
    for seed in range(8):
        args = arguments(frames, n=n, grid=grid, seed=seed)
        with torch.no_grad():
            expected, plain = in_float64(frames, *args), frames(*args)
            scores = compiled(frames, *args)
        assert torch.equal(scores.isinf(), expected.isinf())
        real = expected.isfinite()
        errors.append([(s.double() - expected)[real].abs().max() for s in (scores, plain)])
    error, own_error = torch.tensor(errors).amax(0)
    assert error <= 4 * own_error + 1e-5


def test_the_number_of_slices_does_not_change_scores(frames):
    args = arguments(frames, batch=40, prefixes=3)
    with torch.no_grad():
        batched = compiled(frames, *args)
        scores, ends, queries, points, keys = args
        # Compute the queries once, because PyTorch's rounding depends on the size of the batch.
        queries = frames.query(queries)
        for b in range(40):
            one = slice(b, b + 1)
            edges = tuple(tokens[one] for tokens in ends)
            kernel = frames.compiled(points[one], keys[:, one])
            alone = kernel(scores[one], edges, queries[one])
            assert torch.equal(alone, batched[one])


def test_the_input_scores_are_not_overwritten(frames):
    args = arguments(frames)
    before = args[0].clone()
    with torch.no_grad():
        compiled(frames, *args)
    assert torch.equal(args[0], before)


def test_ends_that_are_not_tokens_are_refused(frames):
    scores, ends, queries, points, keys = arguments(frames)
    with torch.no_grad(), pytest.raises(IndexError, match=r"expected ends of edges in 0\.\.21"):
        compiled(frames, scores, (*ends[:2], torch.full_like(ends[2], 22)), queries, points, keys)
    with torch.no_grad(), pytest.raises(ShapeError, match="expected scores"):
        compiled(frames, scores[:, :1], ends, queries, points, keys)
