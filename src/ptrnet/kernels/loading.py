"""When compiled code is worth loading, for what PyTorch computes as well.

A process that gives a few answers and ends would wait for it longer than PyTorch takes. Where no
earlier process has left it in the cache, it is compiled, which takes ten seconds.
"""

# Steps after which PyTorch has taken a third of the time of loading; one of so many more prefixes
# takes twice as long.
STEPS_BEFORE, ROWS_OF_A_STEP = 100, 32

_steps = 0  # that PyTorch has computed in this process


def at_once() -> None:
    """Loads it for the next step: for work that goes on after a stop, to the same bits."""
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
