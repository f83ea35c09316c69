"""`Spaces`: its formula, places in sets, and padding."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from ptrnet.models.parts import spaces as parts
from tests.support.small_models import random_spaces

SIZES = torch.tensor([5, 1, 3])
IS_ELEMENT = torch.arange(5) < SIZES[:, None]


def inputs(features=4):
    random = torch.Generator().manual_seed(1)
    return torch.randn(3, 5, features, generator=random).round(decimals=1)  # with ties


@pytest.mark.parametrize("at_once", [1, 2**24])
def test_places_are_those_of_ranks(monkeypatch, at_once):
    """The mean rank r of n values is the place `(2 r - n - 1) / (n - 1)`."""
    monkeypatch.setattr(parts, "MAX_NUMBERS", at_once)
    x = inputs()
    found = parts.places(x, IS_ELEMENT)
    for row, of_set, n in zip(x, found, SIZES.tolist(), strict=True):
        ranks = rankdata(row[:n].numpy(), axis=0)
        np.testing.assert_allclose(of_set[:n], (2 * ranks - n - 1) / max(1, n - 1), atol=1e-6)


def test_scores_follow_the_formula():
    spaces, x = random_spaces(4, 6), inputs()
    spaces.scales.abs_()[2] = 0  # a feature that all examples share
    found = spaces(x, IS_ELEMENT).detach().double().numpy()
    values = {name: value.double().numpy() for name, value in spaces.state_dict().items()}
    z = np.clip((x.double().numpy() - values["means"]) * values["scales"], -10, 10)
    length = 3 * np.sqrt(3)
    for k, n in enumerate(SIZES.tolist()):
        p = (2 * rankdata(z[k, :n], axis=0) - n - 1) / max(1, n - 1)
        expected = z[k, :n] @ values["weights"]
        for y, rows, of_rows in ((z[k, :n], "rows", "of_rows"), (p, "places", "of_places")):
            kernel = np.exp(-cdist(y, values[rows], "cityblock") / length)
            expected = expected + kernel @ values[of_rows]
        np.testing.assert_allclose(found[k, :n], expected, atol=1e-5)


def test_more_rows_change_nothing():
    spaces, x = random_spaces(4, 6), inputs()
    expected = spaces(x, IS_ELEMENT)
    spaces.resize(9)
    assert len(spaces) == len(spaces.of_places) == 9
    torch.testing.assert_close(spaces(x, IS_ELEMENT), expected)


@pytest.mark.parametrize("few", [(), (1, 3), (0, 1, 2, 3)])
def test_many_elements_are_scored_by_the_same_formula(few):
    """Whether the rows have few values of a feature, or many."""
    random = torch.Generator().manual_seed(2)
    rows, weights = torch.randn(40, 4, generator=random), torch.randn(40, generator=random)
    rows[:, few] = rows[:, few].sign()
    x = torch.randn(parts.MANY_ELEMENTS // 2, 3, 4, generator=random)
    found = parts.weighted(x, rows, torch.tensor(6.0), weights)
    kernel = np.exp(-cdist(x.flatten(0, 1).double(), rows.double(), "cityblock") / 6)
    expected = (kernel @ weights.double().numpy()).reshape(x.shape[:2])
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_the_kernel_of_a_graph_is_that_of_eager_code(monkeypatch):
    x, rows = inputs(), torch.randn(7, 4)
    eager = parts.kernel(x, rows, 2.0)
    monkeypatch.setattr(parts, "is_eager", lambda *tensors: False)
    torch.testing.assert_close(parts.kernel(x, rows, 2.0), eager)
