"""A trained model together with its task: from raw instances to answers."""

from ptrnet.solver.answer import Answer
from ptrnet.solver.solver import Solver

__all__ = ["Answer", "Solver"]
