"""Compare recurrent layers with PyTorch's modules, sequence by sequence, in float64."""

import pytest
import torch

from ptrnet.models.parts.recurrent import decoder, encoder
from ptrnet.models.settings import RecurrentSettings

NAMES = {
    "w_input": "weight_ih",
    "w_hidden": "weight_hh",
    "b_input": "bias_ih",
    "b_hidden": "bias_hh",
}
TORCH = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}


def pair(cell, layers, bidirectional):
    """Return our encoder with 6 units, and PyTorch's module with the same weights."""
    torch.manual_seed(2)
    settings = RecurrentSettings(
        hidden_size=6, cell=cell, layers=layers, bidirectional=bidirectional
    )
    network = encoder(3, settings).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    reference = TORCH[cell](3, 6 // (1 + bidirectional), layers, True, True, 0.0, bidirectional)
    weights = {}
    for key, value in network.state_dict().items():
        *path, name = key.split(".")
        level = path[path.index("layers") + 1] if "layers" in path else "0"
        weights[f"{NAMES[name]}_l{level}{'_reverse' * ('backwards' in path)}"] = value
    reference.double().load_state_dict(weights)
    return settings, network, reference


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("cell", TORCH)
def test_encoder_equals_pytorchs(cell, layers, bidirectional):
    _, network, reference = pair(cell, layers, bidirectional)
    x, lengths = torch.randn(4, 5, 3, dtype=torch.float64), [5, 1, 3, 5]
    outputs, state = network(x, torch.tensor(lengths))
    for b, n in enumerate(lengths):
        expected, last = reference(x[b : b + 1, :n])
        torch.testing.assert_close(outputs[b, :n], expected[0], rtol=1e-10, atol=1e-12)
        parts = last if cell == "lstm" else (last,)
        top_first = [
            part[:, 0].view(layers, -1)[level]
            for level in reversed(range(layers))
            for part in parts
        ]
        for tensor, truth in zip(state, top_first, strict=True):
            torch.testing.assert_close(tensor[b], truth, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", TORCH)
def test_decoder_steps_equal_the_whole_sequence(cell, layers):
    torch.manual_seed(2)
    network = decoder(3, RecurrentSettings(hidden_size=4, cell=cell, layers=layers)).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    parts = layers * (2 if cell == "lstm" else 1)
    start = tuple(torch.randn(2, 4, dtype=torch.float64) for _ in range(parts))
    outputs, last = network(x, torch.tensor([5, 5]), start)
    state = tuple(s[:, None] for s in start)
    for t in range(5):
        state = network.step(x[:, t : t + 1], state)
        torch.testing.assert_close(state[0][:, 0], outputs[:, t], rtol=1e-10, atol=1e-12)
    for a, b in zip(state, last, strict=True):
        torch.testing.assert_close(a[:, 0], b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("cell", TORCH)
def test_empty_sequence_leaves_the_state_unchanged(cell):
    network = decoder(3, RecurrentSettings(hidden_size=4, cell=cell)).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    start = tuple(torch.randn(2, 4, dtype=torch.float64) for _ in range(1 + (cell == "lstm")))
    _, last = network(torch.randn(2, 3, 3, dtype=torch.float64), torch.tensor([0, 0]), start)
    for a, b in zip(start, last, strict=True):
        assert torch.equal(a, b)
