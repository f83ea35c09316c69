"""The GPU's kernel on a machine without a GPU: interpreted, and compiled without being run."""

import os
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from ptrnet.kernels import additive

ROOT = Path(__file__).parents[2]
needs_triton = pytest.mark.skipif(not find_spec("triton"), reason="triton is not installed")


@needs_triton
def test_the_gpus_kernel_passes_its_tests_in_tritons_interpreter():
    """Run in a new process, because triton decides at import whether to interpret."""
    # The interpreter computes by NumPy, which warns if exp overflows to inf, as the kernel intends.
    options = ["-k", "triton", "-W", "ignore:overflow:RuntimeWarning"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/kernels/test_additive.py", *options],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


@needs_triton
@pytest.mark.parametrize(
    "kernel, dtype, constants",
    [
        ("_forward", "fp32", "FORWARD_BLOCK"),
        ("_forward", "bf16", "FORWARD_BLOCK_ONE_QUERY"),
        ("_backward", "bf16", True),
        ("_backward", "fp64", False),
    ],
)
def test_the_gpus_kernel_compiles(kernel, dtype, constants, tmp_path, monkeypatch):
    """The interpreter accepts code that the compiler refuses. Compile for an H100 or H200."""
    import triton
    from triton.backends.compiler import GPUTarget

    from ptrnet.kernels import additive_gpu as gpu

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    function = getattr(gpu, kernel)
    precise = "fp64" if dtype == "fp64" else "fp32"
    if kernel == "_backward":
        constants = (*gpu.BACKWARD_BLOCK, constants)
    else:
        constants = getattr(gpu, constants)
    names = function.arg_names[: -len(constants)]
    constants = dict(zip(function.arg_names[-len(constants) :], constants, strict=True))
    types = dict.fromkeys(names, "i32") | dict.fromkeys(constants, "constexpr")
    for name in names:
        if "lengths" in name:
            types[name] = "*i64"
        elif name in ("keys", "queries", "grad_keys"):
            types[name] = f"*{dtype}"
        elif name in ("v", "scores", "grad", "grad_queries", "grad_v"):
            types[name] = f"*{precise}"
    source = triton.compiler.ASTSource(function, types, constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    assert compiled.asm["cubin"]


def test_plain_pytorch_computes_if_triton_is_not_installed(monkeypatch):
    monkeypatch.setattr(additive, "find_spec", lambda name: None)
    additive._triton_runs.cache_clear()
    assert additive.kernel_on(torch.device("cuda")) is additive.chunked_scores
    assert additive.kernel_on(torch.device("mps")) is additive.chunked_scores
    additive._triton_runs.cache_clear()


@needs_triton
def test_plain_pytorch_computes_if_triton_does_not_run(monkeypatch):
    from ptrnet.kernels import additive_gpu as gpu

    def no_compiler(*_):
        raise RuntimeError("no C compiler")

    monkeypatch.setattr(gpu, "triton_scores", no_compiler)
    with pytest.warns(UserWarning, match=r"plain PyTorch on cpu.*no C compiler"):
        assert not additive._triton_runs(torch.device("cpu"))
    additive._triton_runs.cache_clear()


@needs_triton
def test_the_gpus_kernel_computes_if_triton_runs(monkeypatch):
    monkeypatch.setattr(additive, "_triton_runs", lambda device: True)
    assert additive.kernel_on(torch.device("cuda")).__name__ == "triton_scores"


def test_the_benchmark_says_that_it_needs_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(ROOT / "benchmarks" / "gpu_scores.py"), run_name="__main__")
    out, err = capsys.readouterr()
    assert not out and "needs a GPU" in err and err.count("\n") == 1
