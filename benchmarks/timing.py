"""Medians, peaks of memory, and the machine they were measured on."""

import gc
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch


def median_ms(run: Callable[[], object], repeats: int = 15) -> float:
    """Milliseconds of a call, median of `repeats` after two that are not counted."""
    run()
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def peak_mb(run: Callable[[], object]) -> float:
    """How far a call raises this process's memory above what it held before; Linux only."""
    run()
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _status("VmRSS")
    run()
    return (_status("VmHWM") - before) / 1024


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key + ":"))


def product_rate(dtype: torch.dtype, size: int = 2048) -> float:
    """Floating-point operations a second of one large matrix product: the roofline."""
    a, b = torch.rand(size, size).to(dtype), torch.rand(size, size).to(dtype)
    return 2 * size**3 / (median_ms(lambda: a @ b, 7) / 1000)


def machine() -> str:
    """The processor, the cores in use, and the versions that matter."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "")
    flags = next((x for x in lines if x.startswith("flags")), "")
    bf16 = (
        "amx_bf16" if "amx_bf16" in flags else "avx512_bf16" if "avx512_bf16" in flags else "none"
    )
    return (
        f"{name or platform.processor()}, {torch.get_num_threads()} cores, bfloat16: {bf16}, "
        f"torch {torch.__version__}, Python {platform.python_version()}"
    )
