"""The compiled step of a decoder layer against the formulas, which PyTorch computes in float64."""

import copy

import pytest
import torch

from ptrnet.models.parts.attention import DecoderLayer

UNITS, INNER_UNITS = 24, 40


def arguments(heads, prefixes, earlier, others=9, batch=3, seed=0):
    """Rows, keys and values of earlier tokens, those of others, and a bias with some padding."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape):
        return torch.randn(*shape, generator=generator)

    bias = torch.zeros(batch, 1, 1, others)
    bias[0, ..., others - others // 2 :] = -torch.inf
    past = tuple(random(batch, prefixes, earlier, UNITS) for _ in range(2))
    of_others = tuple(random(batch, heads, others, UNITS // heads) for _ in range(2))
    return 3 * random(batch, prefixes, UNITS), past, of_others, bias


def doubled(x):
    return tuple(map(doubled, x)) if isinstance(x, tuple) else x.double()


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize(("prefixes", "earlier", "others"), [(1, 0, 1), (2, 1, 9), (5, 30, 40)])
def test_a_compiled_step_equals_the_formulas(heads, prefixes, earlier, others):
    torch.manual_seed(1)
    layer = DecoderLayer(UNITS, heads, INNER_UNITS)
    rows, past, of_others, bias = arguments(heads, prefixes, earlier, others)
    with torch.no_grad():
        exact = copy.deepcopy(layer).double().step(*map(doubled, (rows, past, of_others, bias)))
        plain = layer.step(rows, past, of_others, bias)
        before = rows.clone()
        compiled = layer.compiled_step(of_others, bias)(rows, past)
    assert torch.equal(rows, before)
    for ours, pytorchs, expected in zip(*map(flat, (compiled, plain, exact)), strict=True):
        own_error = (pytorchs.double() - expected).abs().max().item()
        torch.testing.assert_close(ours.double(), expected, atol=4 * own_error + 1e-6, rtol=1e-6)


def flat(result):
    rows, (keys, values) = result
    return rows, keys, values
