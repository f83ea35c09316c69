import matplotlib.image
import numpy as np
import pytest

import ptrnet
from ptrnet.errors import InputError
from ptrnet.plots.attention import draw_attention
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


def picture(path, solver, points):
    answered = solver.predict([Example(points)])[0]
    draw_attention(path, solver.task, answered, *solver.attention(answered))
    return matplotlib.image.imread(path)


def test_points_get_a_picture_of_each_step_and_numbers_the_matrix_alone(tmp_path):
    hull = picture(tmp_path / "a.png", ptrnet.load("hull"), np.random.default_rng(0).random((9, 2)))
    sort = picture(tmp_path / "b.png", ptrnet.load("sort"), np.random.default_rng(0).random((9, 1)))
    assert hull.shape[0] > sort.shape[0] and hull.shape[1] == sort.shape[1]
    assert (hull[..., :3] < 0.5).any() and (sort[..., :3] < 0.5).any()


def test_a_matrix_too_large_to_read_is_refused(tmp_path):
    with pytest.raises(InputError, match="at most 200 steps over as many tokens, got 3 over 201"):
        draw_attention(
            tmp_path / "a.png",
            ptrnet.load("sort").task,
            Example(np.zeros((200, 1))),
            np.zeros((3, 201)),
            np.zeros(3, int),
        )
    assert not list(tmp_path.iterdir())
