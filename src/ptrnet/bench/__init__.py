"""Speed, measured here: one file of `measurements/` for each kind, which gives rows.

Sides of a ratio run in turn in one process (`timing`), each side's memory is that of a process
of its own (`memory`), and beside the time stands the least that the machine could take
(`roofline`).
"""

import importlib
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ptrnet.errors import InputError, MissingExtraError, unknown

if TYPE_CHECKING:  # the names are known without torch
    from ptrnet.bench.row import Row

MEASUREMENTS = ("score", "train", "solve", "label", "data", "export")


def plan(measurement: str | None, options: dict[str, Any]) -> dict[str, "Iterator[Row]"]:
    """The rows of one measurement or of all, by its name; they are measured as they are taken.

    Args:
        measurement: one of MEASUREMENTS; None for all.
        options: settings, for each measurement that has them.

    Raises:
        InputError: an unknown measurement, a setting that no planned measurement has, or a
            value that cannot be measured.
        MissingExtraError: the one measurement needs a package that is not installed.
    """
    if measurement is not None and measurement not in MEASUREMENTS:
        raise unknown("measurement", measurement, MEASUREMENTS)
    planned: dict[str, Iterator[Row]] = {}
    used: set[str] = set()
    for name in MEASUREMENTS if measurement is None else (measurement,):
        rows = importlib.import_module(f"{__name__}.measurements.{name}").rows
        parameters = inspect.signature(rows).parameters
        arguments = {key: options[key] for key in parameters if key in options}
        try:
            planned[name] = rows(**arguments)
        except MissingExtraError:
            if measurement is not None:
                raise
            continue  # all that can be measured here was asked for
        used |= arguments.keys()
    for key in options:
        if key not in used:
            raise InputError(f"--{key.replace('_', '-')} does nothing with bench {measurement}")
    return planned
