"""Problems: tasks that a network learns from the costs of its answers.

Each problem of ptrnet has its own file in this folder. A user can define a problem in a Python file
with the decorator `register`, like a task in a plug-in:

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

__all__ = ["STAY", "Problem", "State", "names", "register", "register_file"]


def register_file(path: str) -> str:
    """Register a Python file as a plug-in, and return the name of the problem that it defines.

    Raises:
        InputError: the file cannot be imported, or does not register exactly one problem.
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
