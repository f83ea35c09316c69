import numpy as np
import pytest

import ptrnet
from ptrnet.errors import InputError
from ptrnet.plots.attention import draw_matrix
from ptrnet.types import Example


@pytest.mark.parametrize("task", ["hull", "sort", "tsp"])
def test_attention_multiplies_to_the_probability_of_the_answer(small, task):
    solver = small(task, scale=8.0)
    examples = [Example(solver.task.sample(np.random.default_rng(n), 1, n)[0]) for n in (4, 7)]
    for answered in solver.predict(examples, ptrnet.Beam(3), constrained=False):
        probabilities, tokens = solver.attention(answered)
        np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
        steps = probabilities[np.arange(len(tokens)), tokens]
        assert np.log(steps).sum() == pytest.approx(answered.log_prob, abs=1e-3)


def test_a_matrix_too_large_to_read_is_refused():
    with pytest.raises(InputError, match="at most 200 steps over as many tokens, got 3 over 201"):
        draw_matrix(None, np.zeros((3, 201)), np.zeros(3, int), ["END"])


def test_the_squares_mark_the_tokens_of_the_answer():
    solver, points = ptrnet.load("hull"), np.random.default_rng(0).random((9, 2))
    ax = solver.plot_attention(points)
    probabilities, tokens = solver.attention(points)
    np.testing.assert_array_equal(ax.images[0].get_array(), probabilities)
    assert ax.lines[0].get_xdata().tolist() == tokens.tolist()
    assert tokens.tolist() == [*(solver.solve(points) + 1), 0]
