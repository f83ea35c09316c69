"""Process-wide settings that make training and decoding faster.

Programs call `tune`. Libraries should not, because the settings affect the whole process.
"""

import contextlib
import ctypes
import gc
import os
import sys
from pathlib import Path

from ptrnet import __version__

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of glibc's malloc.h
_MAX_INT = 2**31 - 1
_PRIMITIVES = 128  # compiled operations that oneDNN caches; a training step needs about 20


def cache_folder() -> Path:
    """Return the user's cache folder for ptrnet. Raises RuntimeError if the user has no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ptrnet"


def tune() -> None:
    """Apply the settings. Call this once, before torch is imported.

    - Compiled kernels are cached in the user's cache folder, in a folder for each version. By
      default, numba caches kernels next to the source, where kernels of older versions are reused.
    - Freed memory stays with the process. By default, glibc returns the memory of each large tensor
      to the system, and gets new, zeroed pages for the next tensor. That takes a third of an LSTM
      layer's time.
    - The OpenMP threads of torch sleep early if they are idle. The compiled kernels have threads of
      their own, which get a core only while torch's threads sleep.
    - oneDNN caches the code of fewer operations. oneDNN compiles code for each shape. If sizes of
      instances vary, the default of 1,024 operations fills gigabytes with code that is rarely used
      again.
    - Python's garbage collector runs less often. Importing torch creates many objects that all
      stay. By default, the collector takes a fifteenth of the import's time.

    Examples:
        >>> import ptrnet.runtime
        >>> ptrnet.runtime.tune()
        >>> import torch
    """
    with contextlib.suppress(RuntimeError):  # a user without a home directory
        os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder() / f"compiled-{__version__}"))
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_PRIMITIVES))
    _set_malloc(_M_MMAP_THRESHOLD, 2**30)
    _set_malloc(_M_TRIM_THRESHOLD, _MAX_INT)
    gc.set_threshold(5000)


def share_arena() -> None:
    """Let all threads allocate memory from the main thread's arena. Call this before threads start.

    Use this in a program that computes in other threads than the main thread. By default, each of
    these threads has a separate arena. The settings of `tune` for freed memory do not apply to
    separate arenas, so large batches take a tenth longer.
    """
    _set_malloc(_M_ARENA_MAX, 1)


def _set_malloc(parameter: int, value: int) -> None:
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(parameter, value)
