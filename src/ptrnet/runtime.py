"""Process-wide settings that make training and decoding faster; for programs, not for libraries."""

import contextlib
import ctypes
import gc
import os
import sys
from pathlib import Path

from ptrnet.version import VERSION

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of glibc's malloc.h
_MAX_INT = 2**31 - 1
_PRIMITIVES = 128  # that oneDNN keeps; a step of a training needs some 20


def cache_folder() -> Path:
    """The user's cache folder of ptrnet. Raises RuntimeError where there is no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ptrnet"


def tune() -> None:
    """Sets them. To be called once, before torch is imported.

    - Compiled kernels are kept in the user's cache folder, by ptrnet's version: beside the source,
      where numba keeps them otherwise, those of an older version would be used again.
    - Freed memory stays with the process: glibc returns every large tensor to the system and
      takes fresh, zeroed pages for the next, which costs a third of an LSTM layer's time.
    - OpenMP's idle threads stop spinning soon: the compiled kernels run on threads of their own,
      which get a core only when torch's have gone to sleep.
    - oneDNN keeps the code of fewer products: each shape has its own, and where sizes of instances
      vary, the 1,024 that it would keep fill gigabytes and are hardly used again.
    - Cycles of objects are searched for less often: importing torch makes a great many objects
      that all stay, and the searches take a fifteenth of its time.
    """
    with contextlib.suppress(RuntimeError):  # a user without a home
        os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder() / f"compiled-{VERSION}"))
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_PRIMITIVES))
    _set_malloc(_M_MMAP_THRESHOLD, 2**30)
    _set_malloc(_M_TRIM_THRESHOLD, _MAX_INT)
    gc.set_threshold(5000)


def share_arena() -> None:
    """Lets threads take memory where the main thread does; to be called before they start.

    For a program that computes in one thread beside the main one: what `tune` says of freed memory
    does not hold in a thread's own arena, and large batches there take a tenth longer.
    """
    _set_malloc(_M_ARENA_MAX, 1)


def _set_malloc(parameter: int, value: int) -> None:
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(parameter, value)
