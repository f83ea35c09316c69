"""A trained model together with its task, which answers instances, and its answers."""

from ptrnet.solver.answer import Answer
from ptrnet.solver.solver import Solver

__all__ = ["Answer", "Solver"]
