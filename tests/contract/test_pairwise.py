"""Pairs of values against all of them, by enumeration."""

from itertools import combinations, product

import numpy as np
import pytest

from tests.contract.pairwise import pairwise


def pairs(rows):
    return {(i, j, row[i], row[j]) for row in rows for i, j in combinations(range(len(row)), 2)}


@pytest.mark.parametrize("seed", range(20))
def test_every_pair_that_is_valid_is_covered_and_no_other(seed):
    rng = np.random.default_rng(seed)
    sizes = sorted(rng.integers(1, 8, rng.integers(2, 6)).tolist(), reverse=True)
    factors = [[f"{i}-{k}" for k in range(size)] for i, size in enumerate(sizes)]
    every = list(product(*factors))
    forbidden = {row for row in every if rng.random() < 0.3 * (seed % 2)}
    rows = pairwise(*factors, valid=lambda *row: row not in forbidden)
    assert set(rows) <= set(every) - forbidden and len(set(rows)) == len(rows)
    assert pairs(rows) == pairs(set(every) - forbidden)


def test_pairwise_covering_needs_few_combinations():
    rows = pairwise(*(range(size) for size in (11, 7, 5, 5, 2)))
    assert pairwise(*(range(size) for size in (11, 7, 5, 5, 2))) == rows
    assert 11 * 7 <= len(rows) <= 11 * 7 + 4
