"""The machine and the versions that times were measured on."""

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ptrnet.version import VERSION


def machine(device: str) -> dict[str, Any]:
    """The processor, its cores and how busy they were; the GPU where it does the work."""
    import torch

    facts: dict[str, Any] = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "bfloat16": _bfloat16(),
        "load": round(os.getloadavg()[0], 2),  # processes that wanted a core in the last minute
        "system": f"{platform.system()} {platform.machine()}",
    }
    return {**facts, "gpu": torch.cuda.get_device_name()} if device == "cuda" else facts


def versions() -> dict[str, str]:
    """The versions of ptrnet, Python and the packages that do the work."""
    return {
        "ptrnet": VERSION,
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "numba", "numpy")},
    }


def describe(machine: dict[str, Any], versions: dict[str, str]) -> str:
    """The machine and the versions in two lines of text."""
    gpu = f"{machine['gpu']}, " if "gpu" in machine else ""
    return (
        f"{gpu}{machine['processor']}, {machine['threads']} threads on {machine['cores']} cores, "
        f"bfloat16: {machine['bfloat16']}, load before: {machine['load']}\n"
        + ", ".join(f"{name} {number}" for name, number in versions.items())
    )


def processor() -> str:
    """The name of the processor."""
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return _line("model name") or platform.processor() or platform.machine()


def commit() -> str:
    """The commit of the source; the version where it is no checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return f"version {VERSION}"
    return done.stdout.strip()


def _bfloat16() -> str:
    flags = _line("flags").split()
    return next((flag for flag in ("amx_bf16", "avx512_bf16") if flag in flags), "none")


def _line(key: str) -> str:
    """The value of a key in /proc/cpuinfo, of the first core; empty where there is none."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")
