"""Kernels give the same bits when they are compiled and when they are loaded from the cache."""

from tests.support.fork_server import ForkServer

PROBE = """
import hashlib
import torch
from ptrnet import kernels, models, tasks
from ptrnet.kernels.additive import additive_scores
from ptrnet.kernels.additive_cpu import PreparedScores
from ptrnet.kernels.lstm_formula import Weights
from ptrnet.kernels.lstm_cpu import compiled_lstm as lstm

torch.set_num_threads(1)
torch.manual_seed(0)
results = []

def drawn(*shape):
    return (torch.rand(shape) - 0.5).requires_grad_()

def add(outputs, inputs):
    results.extend(torch.autograd.grad(sum(o.float().sum() for o in outputs), inputs))
    results.extend(outputs)

keys, queries, v = drawn(8, 20, 64), drawn(8, 7, 64), drawn(64)
add([additive_scores(keys, queries, v)], [keys, queries, v])
large = [(200 * x).detach().requires_grad_() for x in (keys, queries)]
add([additive_scores(*large, v)], [*large, v])
with torch.no_grad():
    results.append(PreparedScores(keys, v)(queries))

inputs, lengths = drawn(8, 6, 2), torch.tensor([6, 5, 4, 3, 2, 1, 0, 6])
state = (drawn(8, 64), drawn(8, 64))
weights = Weights(drawn(256, 2), drawn(256, 64), drawn(256), drawn(256))
for low in (False, True):
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        outputs, last = lstm(inputs, lengths, state, weights)
        add([outputs[0], *last], [inputs, *state, *weights])
        with torch.no_grad():
            results.append(lstm(inputs, lengths, state, weights)[1][0])

kernels.use_compiled_kernels()
task, settings = tasks.get("reading-order"), models.settings_of("box-ptr-net", hidden_size=16)
network = models.for_task("box-ptr-net", task, settings).eval()
sizes = torch.tensor([40])
with torch.no_grad():
    results.extend(network.greedy(network.example_inputs(1, 40), sizes, sizes))
for result in results:
    print(hashlib.sha256(result.detach().float().contiguous().numpy().tobytes()).hexdigest())
"""


def test_bits_are_equal_with_a_cold_and_a_warm_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))  # numba reads it at import
    server = ForkServer("import numba, torch")
    cold, warm = (server.run(PROBE, cwd=tmp_path) for _ in range(2))
    server.close()
    assert cold.returncode == 0, cold.stderr
    assert list(tmp_path.rglob("*.nbc"))
    assert len(cold.stdout.split()) > 30 and cold.stdout == warm.stdout, warm.stderr
