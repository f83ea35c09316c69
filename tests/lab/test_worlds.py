"""Drawn worlds of `ptrnet_lab.chooser`, and the table that compares settings on them."""

import numpy as np
import pytest
from scipy import stats

from ptrnet.training.own_data import MAX_ROWS
from ptrnet.training.spaces import SHIPPED, fit_spaces
from ptrnet_lab.chooser.__main__ import KINDS, SETTINGS, log_likelihood, main, table
from ptrnet_lab.chooser.worlds import draw

EXAMPLES, QUESTIONS = 100, 50


def _worlds(seed, count, elements, columns, graded=False):
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        yield draw(rng, EXAMPLES, QUESTIONS, elements, columns, graded)


def _gain(world):
    """By how much a fit to the examples is better than chance on the questions, for each."""
    chance = -np.log(world.present[EXAMPLES:].sum(1)).mean()
    return log_likelihood(world, EXAMPLES, SHIPPED) - chance


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize(("elements", "columns"), [(2, 1), (3, 4), (6, 16), (16, 32)])
def test_worlds_are_sound(elements, columns, graded):
    """Sets have two elements or more, padding is 0, and answers are of elements that are there."""
    for world in _worlds(1, 40, elements, columns, graded):
        sets, width = world.features.shape[1:]
        assert sets <= elements
        assert width <= columns
        assert np.isfinite(world.features).all()
        assert world.present.sum(1).min() >= 2
        assert not world.features[~world.present].any()
        assert not world.grades[~world.present].any()
        if not graded:
            assert (np.sort(world.grades, 1)[:, ::-1] == np.eye(sets)[0]).all()


def test_examples_have_what_the_world_has():
    for graded in (False, True):
        (world,) = _worlds(7, 1, 6, 8, graded)
        examples = world.examples(slice(30, None))
        assert len(examples) == EXAMPLES + QUESTIONS - 30
        for k, example in enumerate(examples, 30):
            present, grades = world.present[k], world.grades[k][world.present[k]]
            np.testing.assert_array_equal(example.inputs, world.features[k][present])
            assert grades[example.outputs[0]] == grades.max()
            assert not graded or (example.grades == grades).all()


def test_no_person_has_both_examples_and_questions():
    several = []
    for world in _worlds(4, 100, 4, 4):
        assert not {*world.groups[:EXAMPLES]} & {*world.groups[EXAMPLES:]}
        if len({*world.groups}) < len(world.groups):
            several.append(world.several)
    assert all(several)
    assert 10 < len(several) < 45  # expected are .4 * .6 of 100 worlds


def test_worlds_are_drawn_again_by_their_seed():
    for first, second in zip(_worlds(5, 4, 5, 9), _worlds(5, 4, 5, 9), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_fits_know_more_than_chance_about_most_worlds():
    gains = np.array([_gain(world) for world in _worlds(2, 20, 5, 8)])
    assert gains.mean() > 0.2
    assert (gains > 0).mean() > 0.7
    assert gains.min() > -0.25  # of 50 questions, so this is noise


def test_fits_do_not_fall_far_below_chance_where_answers_are_chance():
    gains = []
    for number, world in enumerate(_worlds(3, 12, 5, 8)):
        luck = np.random.default_rng(number).random(world.present.shape) * world.present
        answers = np.eye(luck.shape[1])[luck.argmax(1)]
        gains.append(_gain(world._replace(grades=answers)))
    assert -0.04 < np.mean(gains) < 0
    assert np.min(gains) > -0.2


def test_a_space_without_strengths_has_no_effect():
    (world,) = _worlds(6, 1, 5, 8)
    spaces = fit_spaces(
        world.examples(slice(EXAMPLES)), world.task, MAX_ROWS, SETTINGS["only linear"]
    )
    assert spaces.weights.any()
    assert not spaces.of_rows.any()
    assert not spaces.of_places.any()


def test_the_exponent_counts_only_where_groups_have_several_examples():
    (world,) = _worlds(6, 1, 5, 8)
    shipped, other = SETTINGS["shipped"], SETTINGS["exponent 0"]
    number = np.arange(EXAMPLES + QUESTIONS)
    apart, pairs = world._replace(groups=number), world._replace(groups=number // 2)
    assert log_likelihood(apart, EXAMPLES, shipped) == log_likelihood(apart, EXAMPLES, other)
    assert log_likelihood(pairs, EXAMPLES, shipped) != log_likelihood(pairs, EXAMPLES, other)


def test_table_has_paired_differences_and_their_standard_errors():
    values = np.random.default_rng(0).normal(size=(30, len(SETTINGS)))
    kinds = [KINDS[k % 3] for k in range(30)]
    row = table(values, kinds).splitlines()[4].strip("| ").split(" | ")  # of the third settings
    for k, (mean, cell) in enumerate(zip(row[1::2], row[2::2], strict=True)):
        shipped, own = values[k::3, 0], values[k::3, 2]
        difference, error = map(float, cell.split(" ± "))
        assert float(mean) == pytest.approx(own.mean(), abs=1e-4)
        assert difference == pytest.approx((own - shipped).mean(), abs=1e-4)
        assert difference / error == pytest.approx(
            stats.ttest_rel(own, shipped).statistic, rel=1e-2
        )


@pytest.mark.parametrize("option", ["--worlds=49", "--worlds=many", "--seed=-1"])
def test_numbers_that_have_no_meaning_are_refused(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([option])
    assert option[:6] in capsys.readouterr().err
