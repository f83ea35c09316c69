"""A trained model together with its task. It maps raw instances to answers."""

from ptrnet.solver.answer import Answer
from ptrnet.solver.solver import Solver

__all__ = ["Answer", "Solver"]
