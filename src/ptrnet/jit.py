"""The decorators of compiled functions.

numba caches compiled code on the disk: in `NUMBA_CACHE_DIR` (which `runtime.tune` sets), else next
to the source, else in the user's cache folder.
"""

from collections.abc import Callable
from typing import Any

import numba


def cached(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return `numba.njit(cache=True, **options)` as a decorator that also works without a cache.

    No function is called from C. Compiling functions for C would take a sixteenth of the time.
    """
    options = {"no_cfunc_wrapper": True, **options}

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # numba found no folder that it can write, as in a read-only container
            return numba.njit(**options)(function)

    return decorate


# Without the GIL, training continues while another thread labels.
jit = cached(nogil=True)
# For functions that only compiled functions call. If Python calls one, the process crashes, because
# there is no code that takes Python's arguments. Such code takes a fifth of the compilation.
inner = cached(nogil=True, no_cpython_wrapper=True)
# The same for small functions in hot loops, and for functions with one caller: a call that is not
# inlined passes each array of a tuple as seven numbers, which takes as long as a small loop.
inlined = cached(nogil=True, forceinline=True, no_cpython_wrapper=True)


@jit
def assign(target: Any, source: Any) -> None:
    """Copy the numbers of `source` into `target`, which has the same length.

    Compiled functions call this instead of `target[:] = source` or `rows[k] = source`. For such an
    assignment, numba also compiles an error message about shapes. That message adds two seconds to
    the first call of every function.
    """
    for k in range(len(source)):
        target[k] = source[k]
