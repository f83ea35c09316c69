"""Compiled tables of pages, and their products of matrices, against float64."""

import copy

import numpy as np
import pytest
import torch

from ptrnet import kernels, models, tasks
from ptrnet.kernels.numerics import reassociating_jit
from ptrnet.kernels.vectors import add_product
from ptrnet.pages.labels import LABEL

SETTINGS = {"hidden_size": 24, "heads": 2, "feed_forward": 40, "encoder_layers": 2}


@reassociating_jit
def product(weight, x, out):
    add_product(weight, x, out)


@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(1, 1, 16), (3, 5, 48), (4, 2, 16), (18, 32, 32)]
)
@pytest.mark.parametrize("is_transposed", [False, True])
def test_products_are_exact_and_touch_nothing_else(rows, inner, columns, is_transposed):
    rng = np.random.default_rng(rows)
    drawn = rng.normal(size=(rows + 2, inner) if not is_transposed else (inner, rows + 2))
    weight = drawn.astype(np.float32)
    weight = weight.T if is_transposed else weight
    weight[rows:] = np.nan  # rows that must not be read
    x, around = (rng.normal(size=(n, columns)).astype(np.float32) for n in (inner, rows + 2))
    before = around.copy()
    product(weight, x, around[1:-1])
    expected = before[1:-1] + weight[:rows].astype(np.float64) @ x
    np.testing.assert_allclose(around[1:-1], expected, atol=1e-5)
    assert np.array_equal(around[[0, -1]], before[[0, -1]])


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    task, settings = tasks.get("reading-order"), models.settings_of("box-ptr-net", **SETTINGS)
    return models.for_task("box-ptr-net", task, settings).eval()


def drawn_page(network, n):
    """Return a page on which a third of the boxes have no area, and a third are equal."""
    torch.manual_seed(n)
    inputs = network.example_inputs(1, n)
    inputs[:, 1::3, 2:4] = inputs[:, 1::3, :2] + 1e-5
    inputs[:, 2::3] = inputs[:, 2:3].clone()
    return inputs


@torch.inference_mode()
def encode(network, inputs, is_compiled, monkeypatch):
    monkeypatch.setattr(kernels, "_steps", kernels.STEPS_BEFORE if is_compiled else -1_000_000)
    encoded = network.encode(inputs)
    return encoded.follow, encoded.before, encoded.state[0]


# Attention to one of two almost equal scores of some hundreds turns rounding into large errors.
@pytest.mark.parametrize(("scale", "tolerance"), [(1, 1e-5), (30, 1e-3)], ids=["even", "peaked"])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 130])
def test_compiled_tables_are_those_of_the_formula(network, n, scale, tolerance, monkeypatch):
    network = copy.deepcopy(network)
    for layer in network.encoder:
        layer.attention.inward.weight.data *= scale
    inputs = drawn_page(network, n)
    compiled = encode(network, inputs, True, monkeypatch)
    plain = encode(network, inputs, False, monkeypatch)
    exact = encode(copy.deepcopy(network).double(), inputs.double(), False, monkeypatch)
    for ours, pytorchs, expected in zip(compiled, plain, exact, strict=True):
        assert ours.shape == expected.shape and ours.dtype == torch.float32
        is_finite = expected.isfinite()
        assert torch.equal(ours[~is_finite].double(), expected[~is_finite])
        own_error, error = (
            (found.double() - expected)[is_finite].abs().max().item() for found in (pytorchs, ours)
        )
        assert error <= 4 * own_error + tolerance


@pytest.mark.parametrize("label", [-1.0, 2.0, float("nan")])
def test_labels_without_a_vector_are_refused(network, label, monkeypatch):
    inputs = drawn_page(network, 5)
    inputs[0, 3, LABEL] = label
    with pytest.raises(IndexError, match="expected labels from 0 to 16"):
        encode(network, inputs, True, monkeypatch)
