"""Kernels give the same bits when they are compiled and when they are loaded from the cache; and
what is compiled ahead of a first training is what it would compile."""

import os
import subprocess
import sys

from ptrnet import runtime
from ptrnet.cli import run

PROBE = """
import hashlib
import torch
from ptrnet.kernels import additive_scores
from ptrnet.kernels.additive.arguments import Arguments
from ptrnet.kernels.additive.cpu import PreparedKeys
from ptrnet.kernels.lstm import Weights
from ptrnet.kernels.lstm.cpu import lstm
from ptrnet.kernels.pointer_step import PointerStep, can_serve

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
full = torch.full((8,), 20)
with torch.no_grad():
    prepared = PreparedKeys(Arguments(*(t.detach() for t in (keys, queries, v)), full, full))
    results.append(prepared(queries))

inputs, lengths = drawn(8, 6, 2), torch.tensor([6, 5, 4, 3, 2, 1, 0, 6])
state = (drawn(8, 64), drawn(8, 64))
weights = Weights(drawn(256, 2), drawn(256, 64), drawn(256), drawn(256))
for low in (False, True):
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        outputs, last = lstm(inputs, lengths, state, weights)
        add([outputs[0], *last], [inputs, *state, *weights])
        with torch.no_grad():
            results.append(lstm(inputs, lengths, state, weights)[1][0])
if can_serve(2, 64):
    with torch.no_grad():
        step = PointerStep(weights, drawn(64, 64), prepared)
        log_probs, last = step(inputs[:, :1], tuple(part[:, None] for part in state))
        results.extend([log_probs, *last])
for result in results:
    print(hashlib.sha256(result.detach().float().contiguous().numpy().tobytes()).hexdigest())
"""


def test_cold_and_warm_cache(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    cold, warm = (
        subprocess.run(
            [sys.executable, "-c", PROBE],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        for _ in range(2)
    )
    assert cold.returncode == 0, cold.stderr
    assert list(tmp_path.rglob("*.nbc"))
    assert len(cold.stdout.split()) > 30 and cold.stdout == warm.stdout, cold.stderr


# What a training compiles of `ptrnet.kernels` that was not compiled ahead of it.
TRAINING = """
import gc, sys
from numba.core.dispatcher import Dispatcher
from ptrnet.cli import run
from ptrnet.kernels import aot

def compiled():
    kernels = [
        o for o in gc.get_objects()
        if isinstance(o, Dispatcher) and o.py_func.__module__.startswith("ptrnet.kernels")
    ]
    return {(k.py_func.__name__, s) for k in kernels for s in k.signatures}

aot.compile_training()
aot.compile_decoding()
before = compiled()
code = run(["train", "hull", "--n", "50", "--steps", "2", "--valid-every", "1",
            "--valid-batches", "1", "--output", sys.argv[1]])
print(len(before), compiled() - before, code)
"""


def test_a_training_finds_its_kernels_compiled(tmp_path):
    probe = subprocess.run(
        [sys.executable, "-c", TRAINING, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert probe.returncode == 0, probe.stderr
    *_, count, added, code = probe.stdout.split()
    assert (added, code) == ("set()", "0") and int(count) > 3, probe.stdout


def test_it_is_started_once(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(os, "posix_spawn", lambda _, command, *__, **___: started.append(command))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    for _ in range(2):
        runtime.compile_ahead_of_time()
    assert started == [[sys.executable, "-P", "-m", "ptrnet.kernels.aot"]]


def test_python_does_not_complain_that_it_still_runs(tmp_path):
    """Where warnings are errors, a test that trained first on a machine failed."""
    code = (
        "import os, sys; from ptrnet import runtime; os.cpu_count = lambda: 2; "
        "sys.executable = '/bin/sleep'; runtime.compile_ahead_of_time(); print('started')"
    )
    probe = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (probe.returncode, probe.stdout, probe.stderr) == (0, "started\n", "")


def test_it_is_not_started_by_a_misspelt_task(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "posix_spawn", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    assert run(["train", "hul"]) == 2 and "hul" in capsys.readouterr().err
    assert not (tmp_path / "compiled").exists()


def test_nothing_is_started_where_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "posix_spawn", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    runtime.compile_ahead_of_time()
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    runtime.compile_ahead_of_time()
