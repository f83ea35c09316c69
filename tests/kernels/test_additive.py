"""Compare kernels of additive scores with float64. The plain formula's error sets the tolerance.

The GPU's is tested where there is a GPU, and in Triton's interpreter: see `test_additive_gpu.py`.
"""

import os
from importlib.util import find_spec

import pytest
import torch

from ptrnet.errors import ShapeError
from ptrnet.kernels.additive import additive_scores
from ptrnet.kernels.additive_cpu import compiled_scores
from ptrnet.kernels.additive_formula import chunked_scores, naive_scores

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
GPU = []
if find_spec("triton") and (INTERPRETED or torch.cuda.is_available()):
    from ptrnet.kernels.additive_gpu import triton_scores

    GPU = [triton_scores]


def kernels(*functions):
    return pytest.mark.parametrize("kernel", functions, ids=lambda f: f.__name__)


def scores_of(kernel, *tensors):
    """Return the scores of CPU tensors, computed on the kernel's device."""
    device = "cuda" if kernel in GPU and not INTERPRETED else "cpu"
    return kernel(*(None if t is None else t.to(device) for t in tensors)).cpu()


KERNELS = kernels(compiled_scores, chunked_scores, *GPU)
SIZES = [(1, 1, 1, 1), (3, 7, 5, 33), (2, 1, 9, 16), (5, 12, 1, 7), (2, 37, 1, 130)]
if not INTERPRETED:  # which is slow
    SIZES.append((64, 50, 13, 64))


def draw(batch, n, m, units, scale=1.0, dtype=torch.float32):
    torch.manual_seed(batch * n * m * units)
    tensors = (torch.randn(batch, n, units), torch.randn(batch, m, units), torch.randn(units))
    return [(t * scale).to(dtype).requires_grad_() for t in tensors]


def outcome(kernel, tensors, dtype, lengths=(None, None)):
    """Return scores, and gradients of a weighted sum of them, in float64. Strides are kept."""
    if kernel is naive_scores:
        with torch.autocast("cpu", enabled=False):
            return _outcome(kernel, tensors, dtype, lengths)
    return _outcome(kernel, tensors, dtype, lengths)


def _outcome(kernel, tensors, dtype, lengths):
    tensors = [t.detach().to(dtype).requires_grad_() for t in tensors]
    scores = scores_of(kernel, *tensors, *lengths)
    weights = torch.linspace(-1, 1, scores.numel()).view(scores.shape).to(scores.dtype)
    grads = torch.autograd.grad((scores * weights).sum(), tensors)
    return [scores.detach().double(), *(g.double() for g in grads)]


def assert_as_good_as_the_formula(kernel, tensors, lengths=(None, None), dtype=torch.float32):
    slack = 4.0
    exact = outcome(naive_scores, tensors, torch.float64, lengths)
    plain = outcome(naive_scores, tensors, dtype, lengths)
    actual = outcome(kernel, tensors, dtype, lengths)
    for truth, a, b in zip(exact, actual, plain, strict=True):
        scale = truth.abs().max().clamp(min=1e-6)
        error, tolerated = (a - truth).abs().max(), (b - truth).abs().max()
        assert error <= slack * tolerated + 1e-6 * scale


@KERNELS
@pytest.mark.parametrize("size", SIZES)
def test_error_against_float64_is_as_small_as_the_formulas(kernel, size):
    assert_as_good_as_the_formula(kernel, draw(*size))


@KERNELS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("lengths", [([37, 1, 20], [1, 13, 7]), ([16, 33, 0], [13, 0, 2])], ids=str)
def test_error_with_padding_is_as_small_as_the_formulas(kernel, dtype, lengths):
    tensors = draw(3, 37, 13, 70, dtype=dtype)
    assert_as_good_as_the_formula(kernel, tensors, [torch.tensor(x) for x in lengths], dtype)


@KERNELS
def test_float64_scores_equal_the_formula_up_to_rounding(kernel):
    tensors = draw(4, 9, 6, 20)
    for a, b in zip(
        outcome(kernel, tensors, torch.float64),
        outcome(naive_scores, tensors, torch.float64),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)


@KERNELS
def test_gradients_equal_numerical_differences(kernel):
    tensors = draw(2, 3, 2, 3, dtype=torch.float64)
    lengths = torch.tensor([3, 2]), torch.tensor([1, 2])
    is_slow = kernel in GPU and INTERPRETED
    assert torch.autograd.gradcheck(
        lambda *t: scores_of(kernel, *t, *lengths), tensors, fast_mode=is_slow
    )


@KERNELS
def test_ragged_padding_is_zero_and_gets_no_gradient(kernel):
    tensors = draw(6, 8, 5, 12)
    lengths = torch.tensor([8, 1, 0, 3, 5, 8]), torch.tensor([5, 5, 2, 0, 1, 3])
    assert_as_good_as_the_formula(kernel, tensors, lengths)
    scores, grad_keys, grad_queries, _ = outcome(kernel, tensors, torch.float32, lengths)
    for b, (n, m) in enumerate(zip(*(x.tolist() for x in lengths), strict=True)):
        assert not scores[b, m:].any() and not scores[b, :, n:].any()
        assert not grad_keys[b, n:].any() and not grad_queries[b, m:].any()
        if n and m:
            assert grad_keys[b, :n].any(1).all() and grad_queries[b, :m].any(1).all()


@KERNELS
def test_values_of_padding_do_not_change_scores_or_gradients(kernel):
    keys, queries, v = draw(2, 6, 4, 8)
    lengths = torch.tensor([3, 6]), torch.tensor([4, 2])
    clean = scores_of(kernel, keys, queries, v, *lengths)
    dirty = keys.detach().clone()
    dirty[0, 3:] = 30.0
    assert torch.equal(clean, scores_of(kernel, dirty, queries, v, *lengths))


@KERNELS
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_padding_may_hold_nan_and_infinity(kernel, bad):
    """Padding of keys and queries, and of the gradient of their scores."""
    clean = draw(2, 18, 17, 8)
    lengths = torch.tensor([3, 18]), torch.tensor([17, 2])
    dirty = [t.detach().clone().requires_grad_() for t in clean]
    grad = torch.linspace(-1, 1, 2 * 17 * 18).view(2, 17, 18)
    grad[0, :, 3:] = grad[1, 2:] = bad
    with torch.no_grad():
        dirty[0][0, 3:] = dirty[1][1, 2:] = bad
    scores = [scores_of(kernel, *tensors, *lengths) for tensors in (clean, dirty)]
    assert torch.equal(*scores)
    grads = [
        torch.autograd.grad(outputs, tensors, grad_outputs)
        for outputs, tensors, grad_outputs in zip(
            scores, (clean, dirty), (grad.nan_to_num(), grad), strict=True
        )
    ]
    assert all(torch.equal(*pair) for pair in zip(*grads, strict=True))


@KERNELS
def test_non_contiguous_inputs_give_the_same_scores(kernel):
    keys, queries, v = draw(4, 6, 5, 10)
    views = [keys.transpose(0, 1).contiguous().transpose(0, 1), queries.flip(0), v[::2].detach()]
    views[0], views[1] = views[0][..., ::2], queries[:, ::2, 1::2]
    assert not any(view.is_contiguous() for view in views)
    assert_as_good_as_the_formula(kernel, views)


@KERNELS
@pytest.mark.parametrize("largest", [20.0, 42.0, 44.0, 60.0, 1000.0])
def test_large_magnitudes_do_not_overflow(kernel, largest):
    keys, queries, v = draw(2, 5, 4, 9)
    with torch.no_grad():
        keys[0, 0], queries[0, 0] = largest, 10.0 - largest  # the sum is 10: tanh(10)
        keys[1, 2], queries[1, 1] = -largest, largest + 0.5
    assert_as_good_as_the_formula(kernel, [keys, queries, v])
    exact = torch.tanh(torch.tensor(10.0)) * v.sum()
    score = scores_of(kernel, keys, queries, v)[0, 0, 0]
    torch.testing.assert_close(score, exact, rtol=1e-4, atol=1e-4)


@KERNELS
def test_nan_in_an_input_stays_nan_in_its_scores(kernel):
    keys, queries, v = draw(1, 3, 2, 4)
    with torch.no_grad():
        keys[0, 1, 0] = torch.nan
    scores = scores_of(kernel, keys, queries, v)
    assert scores[0, :, 1].isnan().all() and scores[0, :, [0, 2]].isfinite().all()


@KERNELS
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("n", [5, 130])
def test_half_types_are_computed_in_float32(kernel, dtype, n):
    """Scores have float32's accuracy. Gradients are rounded once, to the type of the input."""
    tensors = draw(2, n, 3, 8, dtype=dtype)
    tensors[2] = tensors[2].detach().float().requires_grad_()
    precise = [t.detach().float().requires_grad_() for t in tensors]
    lengths = torch.tensor([n, 2]), torch.tensor([1, 3])
    scores = scores_of(kernel, *tensors, *lengths)
    expected = naive_scores(*precise, *lengths)
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores, expected, rtol=1e-5, atol=1e-5)
    grad = torch.linspace(-1, 1, scores.numel()).view(scores.shape)
    actual_grads = torch.autograd.grad(scores, tensors, grad)
    expected_grads = torch.autograd.grad(expected, precise, grad)
    for a, b, t in zip(actual_grads, expected_grads, tensors, strict=True):
        assert a.dtype == t.dtype
        rounding = torch.finfo(dtype).eps / (1 if INTERPRETED else 2)  # the interpreter truncates
        torch.testing.assert_close(a.float(), b, rtol=1.01 * rounding, atol=1e-5)


@KERNELS
@pytest.mark.parametrize("batch, n, m", [(0, 5, 3), (2, 0, 3), (2, 5, 0)])
def test_empty_batches_give_empty_scores(kernel, batch, n, m):
    keys, queries, v = draw(2, 5, 3, 8)
    tensors = [keys[:batch, :n], queries[:batch, :m], v]
    scores, *grads = outcome(kernel, tensors, torch.float32)
    assert scores.shape == (batch, m, n)
    assert not any(grad.any() for grad in grads)


def test_any_number_of_threads_gives_the_same_scores_and_gradients():
    tensors = draw(64, 30, 9, 64)  # enough work to be sliced
    threads = torch.get_num_threads()
    try:
        outcomes = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            outcomes.append(outcome(compiled_scores, tensors, torch.float32))
    finally:
        torch.set_num_threads(threads)
    for other in outcomes[1:]:
        assert torch.equal(outcomes[0][0], other[0])
        for a, b in zip(outcomes[0], other, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-4)


def test_shapes_that_do_not_fit_are_refused():
    keys, queries, v = draw(2, 5, 3, 8)
    with pytest.raises(ShapeError, match=r"must be \(2, M, 8\).*got \(1, 3, 8\)"):
        additive_scores(keys, queries[:1], v)
    with pytest.raises(ShapeError, match=r"expects keys \(B, N, H\)"):
        additive_scores(keys[0], queries, v)
    with pytest.raises(ShapeError, match=r"key_lengths must be \(2,\)"):
        additive_scores(keys, queries, v, torch.tensor([1]))


@KERNELS
def test_autocast_changes_nothing(kernel):
    """Scores are float32 under autocast too, and the backward pass does not mix types."""
    tensors = draw(3, 7, 5, 33)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_as_good_as_the_formula(kernel, tensors)
        assert scores_of(kernel, *tensors).dtype == torch.float32


@pytest.mark.parametrize("lengths", [[6, 5], [-1, 5], [10**7, 0]])
def test_lengths_out_of_range_are_refused_before_memory_is_read(lengths):
    keys, queries, v = draw(2, 5, 3, 8)
    with pytest.raises(ShapeError, match=r"key_lengths must be in 0\.\.5"):
        additive_scores(keys, queries, v, torch.tensor(lengths))
    with pytest.raises(ShapeError, match=r"query_lengths must be in 0\.\.3"):
        additive_scores(keys, queries, v, None, torch.tensor(lengths))
