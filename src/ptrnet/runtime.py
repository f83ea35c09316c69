"""Process-wide settings that make training and decoding faster. Only programs call this."""

import contextlib
import ctypes
import os
import sys
from pathlib import Path

from ptrnet.version import VERSION

# M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h.
_TRIM, _MMAP = -1, -3
_KEEP = 2**31 - 1


def cache() -> Path:
    """The user's folder for what can be made again. Raises RuntimeError where there is no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ptrnet"


def tune() -> None:
    """Call once, before torch is imported.

    - Compiled kernels are kept in the user's cache folder, by ptrnet's version: beside the source,
      where numba keeps them otherwise, those of an older version would be found again.
    - Freed memory stays with the process: glibc returns every large tensor to the system and
      takes fresh, zeroed pages for the next, which costs a third of an LSTM layer's time.
    - OpenMP's idle threads stop spinning soon: the compiled kernels run on threads of their own,
      which get a core only when torch's have gone to sleep.
    """
    with contextlib.suppress(RuntimeError):  # a user without a home
        os.environ.setdefault("NUMBA_CACHE_DIR", str(cache() / f"compiled-{VERSION}"))
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_MMAP, 2**30)
            mallopt(_TRIM, _KEEP)
