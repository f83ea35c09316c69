"""Speed on this machine: what `ptrnet bench` measures.

Each measurement is a module with a function `rows`, whose arguments are its options. `harness` has
the code that measurements share. `roofline` computes the least time that the machine could take.
"""

import importlib
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ptrnet.errors import InputError, MissingExtraError, unknown

if TYPE_CHECKING:
    from ptrnet_lab.bench.harness import Row

MEASUREMENTS = ("score", "train", "solve", "label", "data", "export")


def plan(measurement: str | None, options: dict[str, Any]) -> dict[str, "Iterator[Row]"]:
    """Return iterators of rows, by the name of the measurement. Iterating measures the rows.

    Args:
        measurement: an entry of MEASUREMENTS. None: all measurements.
        options: settings by name. Each setting is passed to the measurements that have it.

    Raises:
        InputError: an unknown measurement, a setting that no planned measurement has, or a
            value that cannot be measured.
        MissingExtraError: the requested measurement needs a package that is not installed.
    """
    if measurement is not None and measurement not in MEASUREMENTS:
        raise unknown("measurement", measurement, MEASUREMENTS)
    planned: dict[str, Iterator[Row]] = {}
    used: set[str] = set()
    for name in MEASUREMENTS if measurement is None else (measurement,):
        rows = importlib.import_module(f"{__name__}.{name}").rows
        parameters = inspect.signature(rows).parameters
        arguments = {key: options[key] for key in parameters if key in options}
        try:
            planned[name] = rows(**arguments)
        except MissingExtraError:
            if measurement is not None:
                raise
            continue  # all measurements are requested: skip measurements that cannot run
        used |= arguments.keys()
    for key in options:
        if key not in used:
            raise InputError(f"--{key.replace('_', '-')} has no effect with bench {measurement}")
    return planned
