"""A1, A2 and A3: their answers are tours, with the lengths of V's Table 2."""

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.labellers import exact
from ptrnet.labellers.tours import tour_length
from ptrnet.types import TourRules
from ptrnet_lab.labellers.two_opt import closed_pass
from tests.labellers.test_tours import ODD, lengths

NAMES = ("a1", "a2", "a3")
TSP = tasks.get("tsp")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 13])
def test_every_answer_is_a_tour(name, n):
    tours = labellers.get(name)(np.random.default_rng(n).random((20, n, 2)))
    assert (np.sort(tours, 1) == np.arange(n)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("odd", ODD)
def test_degenerate_cities_get_a_tour(name, odd):
    with np.errstate(all="raise", under="ignore"):
        tours = labellers.get(name)(ODD[odd][None])
    assert (np.sort(tours, 1) == np.arange(len(ODD[odd]))).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("distinct", [2, 4, 5, 9])
def test_equal_cities_get_tours(name, distinct):
    """Equal cities have distance 0. If rounding looked like a gain, 2-opt would never end."""
    rng = np.random.default_rng(100 + distinct)
    spots = rng.random((60, distinct, 2))
    inputs = np.take_along_axis(spots, rng.integers(distinct, size=(60, 10, 1)), 1)
    assert (np.sort(labellers.get(name)(inputs), 1) == np.arange(10)).all()


@pytest.mark.parametrize(
    ("n", "a1", "a2", "a3"),
    [(10, 3.07, 2.87, 2.87), (20, 4.24, 3.86, 3.85), (50, 6.46, 5.84, 5.79)],
)
def test_tour_lengths_match_table_2_of_the_paper(n, a1, a2, a3):
    """A1 has to be as far above the best as in the paper; A2 and A3 may be better than there."""
    inputs = np.random.default_rng(n).random((1000, n, 2))
    means = {name: lengths(inputs, labellers.get(name)(inputs)).mean() for name in NAMES}
    noise = 1.004  # four standard errors of the mean of 1,000 lengths at n = 50, two at n = 10
    assert a1 / 1.015 / noise < means["a1"] < a1 * 1.015 * noise
    assert means["a2"] < a2 * 1.015 * noise and means["a3"] < a3 * 1.015 * noise


def test_a3_is_never_above_one_and_a_half_times_the_shortest():
    for n in (5, 9, 20, 40):
        inputs = np.random.default_rng(n).random((100, n, 2)) ** 3
        best = lengths(inputs, exact.label(inputs))
        assert (lengths(inputs, labellers.get("a3")(inputs)) <= 1.5 * best).all()


def test_labellers_that_take_no_rules_name_those_that_do():
    points, directed = np.random.default_rng(4).random((1, 5, 2)), np.arange(25.0).reshape(1, 5, 5)
    for call in (
        lambda: labellers.label_with_proof(TSP, points, "a1", rules=TourRules(is_open=True)),
        lambda: labellers.label_with_proof(TSP, directed, "a1", "EXPLICIT"),
    ):
        with pytest.raises(
            InputError, match=r"a1: expected .*limit: exact, held-karp, local-search$"
        ):
            call()
    symmetric = directed + directed.swapaxes(1, 2)
    assert labellers.label_with_proof(TSP, symmetric, "a2", "EXPLICIT")[1].all()


def test_2_opt_ends_for_lengths_below_0():
    """Once, an exchange of equal edges of negative length seemed a gain."""
    assert not closed_pass(np.full((6, 6), -2.0), np.arange(6))
    x = np.linspace(0, 1, 6)
    dist, tour = np.abs(x[:, None] - x) - 3, np.array([0, 3, 1, 4, 2, 5])
    for _ in range(20):
        if not closed_pass(dist, tour):
            break
    assert not closed_pass(dist, tour) and tour_length(dist, tour) == pytest.approx(2 - 18)


def test_the_tasks_messages_name_them():
    with pytest.raises(InputError, match=r"unknown labeller .* 'a4'.* \(known: a1, a2, a3, exact,"):
        labellers.check_labeller(TSP, "a4")
    with pytest.raises(InputError, match=r"this size: local-search, a1, a2, a3$"):
        labellers.check_max_elements(TSP, "exact", 100)
    with pytest.raises(InputError, match="unknown labeller of task hull 'a1'"):
        labellers.check_labeller(tasks.get("hull"), "a1")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("ptrnet.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'labeller a3 needs the extra "labels"'):
        labellers.check_labeller(TSP, "a3")
    labellers.check_labeller(TSP, "a2")
