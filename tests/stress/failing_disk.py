"""Simulate disks that fail, by the library of `failing_disk.c`, if there is a compiler."""

import errno
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_suffix(".c")
ERRORS = {name: getattr(errno, name) for name in ("ENOSPC", "EIO", "EROFS", "EDQUOT")}


@cache
def library() -> Path | None:
    """Return the compiled library; None if it cannot be compiled."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    path = Path(tempfile.mkdtemp(prefix="stress-")) / "failing_disk.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", path, SOURCE, "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    return path if done.returncode == 0 else None


def failing(folder: Path, rng: np.random.Generator, most: int) -> tuple[str, dict[str, str]]:
    """Draw a disk that fails at one of the first `most` calls: its name and its environment.

    A full disk and one that cannot be written stay so; another error comes once.
    """
    name = list(ERRORS)[rng.integers(len(ERRORS))]
    at = 1 + int(most * rng.random() ** 3)  # mostly early calls, which every command makes
    settings = {"FOLDER": folder, "AT": at, "LAST": at if name == "EIO" else 0}
    settings["ERRNO"] = ERRORS[name]
    return name, {f"STRESS_{key}": str(value) for key, value in settings.items()}
