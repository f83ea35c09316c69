"""When compiled code is loaded for decoding steps that PyTorch can compute, too.

Loading takes longer than PyTorch takes for a few answers; where the code is not in the cache, it is
compiled, which takes ten seconds. So the first steps of a process are PyTorch's.
"""

# After so many steps PyTorch has taken a third of the time that loading takes, and compiled code is
# loaded. A step counts once more for every so many prefixes.
STEPS_BEFORE, ROWS_OF_A_STEP = 100, 32

_steps = 0  # that PyTorch has computed in this process


def at_once() -> None:
    """Loads compiled code at the next step, so that resumed work computes the same bits."""
    global _steps
    _steps = STEPS_BEFORE


def is_loaded_for(rows: int) -> bool:
    """Whether compiled code computes the next step, of so many prefixes; counts it if not.

    In a thread it depends on the steps before, and on nothing else: where the same commands run
    again, so does the same code.
    """
    global _steps
    if _steps >= STEPS_BEFORE:
        return True
    _steps += 1 + rows // ROWS_OF_A_STEP
    return False
