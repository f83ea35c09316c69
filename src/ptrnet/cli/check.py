"""`ptrnet check`: test a problem before a training."""

from typing import Annotated

import typer

from ptrnet.cli.options import Seed, echo
from ptrnet.errors import InputError


def check(
    problem: Annotated[
        str, typer.Argument(metavar="PROBLEM", help="A file such as my_problem.py, or a name.")
    ],
    seed: Seed = 0,
) -> None:
    """Test a problem on random rollouts, and print the first error, or else what was tested.

    The command looks for choices that lead to invalid or endless answers, and for methods that
    change their arguments. It also looks for results that depend on the batch or on the order of
    the elements, and for numbers that a network cannot read.

    Examples:
        ptrnet check my_problem.py
    """
    from ptrnet import tasks
    from ptrnet.problems import Problem
    from ptrnet.problems.check import check_problem

    kind = tasks.kind(problem)
    if not issubclass(kind, Problem):
        raise InputError(f"{problem} is a task without states: there is nothing to check")
    try:
        echo(check_problem(kind(), seed=seed))
    except InputError as error:
        raise InputError(f"{problem}: {error}") from None
