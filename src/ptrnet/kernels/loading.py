"""When compiled code is worth loading, for what PyTorch computes as well.

A process that gives one answer and ends would wait for it longer than PyTorch takes.
"""

# Prefixes that are computed one by one in the time of loading; so many at a time need not wait.
PREFIXES_BEFORE, MIN_ROWS = 128, 16

_prefixes = 0  # that PyTorch has computed in this process


def at_once() -> None:
    """Loads it for the next prefix: for work that goes on after a stop, to the same bits."""
    global _prefixes
    _prefixes = PREFIXES_BEFORE


def is_worthwhile(rows: int) -> bool:
    """Whether a step of so many prefixes is computed by compiled code; counts them if not.

    In a process it depends on what was computed before, and on nothing else: where the same
    commands run again, so does the same code.
    """
    global _prefixes
    if rows >= MIN_ROWS or _prefixes >= PREFIXES_BEFORE:
        return True
    _prefixes += rows
    return False
