"""Speed, measured here: one file for each thing that is, which gives rows.

Sides of a ratio run in turn in one process (`timing`), each side's memory is that of a process
of its own (`memory`), and beside the time stands the least that the machine could take
(`roofline`).
"""

import importlib
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ptrnet.errors import InputError, unknown

if TYPE_CHECKING:  # the names are known without torch
    from ptrnet.bench.row import Row

WHAT = ("score", "train", "solve", "label", "data")


def plan(what: str | None, given: dict[str, Any]) -> dict[str, "Iterator[Row]"]:
    """The rows of one measurement or of all, by its name; they are measured as they are taken.

    Args:
        what: one of WHAT; None for all.
        given: settings, for each measurement that has them.

    Raises:
        InputError: an unknown measurement, a setting that no measurement asked for has, or a
            value that cannot be measured.
    """
    if what is not None and what not in WHAT:
        raise unknown("measurement", what, WHAT)
    found: dict[str, Iterator[Row]] = {}
    used: set[str] = set()
    for name in WHAT if what is None else (what,):
        rows = importlib.import_module(f"{__name__}.{name}").rows
        own = {key: given[key] for key in inspect.signature(rows).parameters if key in given}
        used |= own.keys()
        found[name] = rows(**own)
    for key in given:
        if key not in used:
            raise InputError(f"--{key.replace('_', '-')} does nothing with bench {what}")
    return found
