"""Regressions: inputs that were once silently misread."""

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import InputError, tasks
from ptrnet.data.dataset import instances_of
from ptrnet.types import Example

HULL, SORT, TSP = (tasks.get(name) for name in ("hull", "sort", "tsp"))


def test_refuses_sets_because_they_have_no_order():
    for values, task in (({(0, 0), (1, 0), (0, 1)}, HULL), (frozenset({3, 1, 2}), SORT)):
        with pytest.raises(InputError, match=r"expected a list or an array, got (frozen)?set"):
            instances_of(values, task)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_whole_numbers_of_frames_are_not_rounded(library):
    frame = pytest.importorskip(library).DataFrame({"x": [2**53 + 1, 1, 2], "y": [0.5, 1.0, 2.0]})
    with pytest.raises(InputError, match="got 9007199254740993, which it rounds to"):
        instances_of(frame, HULL)


def test_evaluate_checks_the_indices_of_examples(small):
    solver, points = small(), np.random.default_rng(0).random((3, 2))
    for outputs, message in (
        ([1, 2, 3], "expected 0 to 2, got 3"),
        ([-1, 0, 1], "expected 0 to 2, got -1"),
        ([0.0, 1.0, 2.0], "expected whole numbers, got float64"),
    ):
        for measure in (solver.evaluate, solver.log_likelihoods):
            with pytest.raises(InputError, match=message):
                measure([Example(points, np.array(outputs))])


def test_refuses_a_field_that_the_first_element_lacks():
    sets = [[{"price": 3}, {"price": 2, "weight": 5}], [{"price": 1}, {"price": 4, "weight": 2}]]
    options = {"steps": 1, "hidden_size": 8, "valid_batches": 0, "ensemble": 1}
    with pytest.raises(InputError, match='element 2: "weight": the first element has no such'):
        ptrnet.fit(sets, [[1, 0], [0, 1]], **options)
    assert (
        ptrnet.fit(sets, [[1, 0], [0, 1]], fields=["price"], **options).task.facts.num_features == 1
    )


def test_lazily_conjugated_tensor_is_resolved():
    imaginary = torch.tensor([[1 + 2j, 3 + 1j], [1j, 2 + 0j]]).conj().imag
    (example,), _ = instances_of(imaginary, HULL)
    assert example.inputs.tolist() == [[-2, -1], [-1, 0]]
