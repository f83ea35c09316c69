"""The problems: tasks whose answers a network learns from their costs. One file a problem.

A user's own Python file registers a problem in the same way as a plug-in registers a task:

    from ptrnet.problems import Problem, register

    @register
    @dataclass(frozen=True)
    class Tardiness(Problem): ...
"""

import sys
from pathlib import Path

from ptrnet import plugins, tasks
from ptrnet.errors import InputError
from ptrnet.problems.base import STAY, Problem, State
from ptrnet.tasks import problem_names as names
from ptrnet.tasks import register

__all__ = ["STAY", "Problem", "State", "name_in", "names", "register"]


def name_in(path: str) -> str:
    """The name of the problem that a Python file registers; the file becomes a plug-in.

    Raises:
        InputError: the file cannot be imported, or registers no problem, or several.
    """
    plugins.add(path)
    found = []
    for name in tasks.names():
        kind = tasks.kind(name)
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None) or ""
        if issubclass(kind, Problem) and Path(file).resolve() == Path(path).resolve():
            found.append(name)
    if len(found) != 1:
        raise InputError(
            f"{path}: expected one class with @ptrnet.problems.register, got "
            f"{', '.join(found) or 'none'}"
        )
    return found[0]
