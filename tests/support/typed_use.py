"""Types in a user's program. mypy checks this file with the sources; it never runs.

Where a name is taken for anything, its `type: ignore` is not needed, and mypy says so.
"""

from typing import assert_type

import ptrnet
from ptrnet.solver import Solver
from ptrnet.training.tuning import Tuning
from ptrnet.types import Dataset

solver = ptrnet.load("hull")
assert_type(solver, Solver)
assert_type(ptrnet.generate("hull", 5, 10), Dataset)
assert_type(ptrnet.generate("hull", 5, 10, output="hulls.txt"), None)
assert_type(ptrnet.tasks.names(), list[str])
assert_type(ptrnet.fit([([[0.5], [0.25]], [1, 0])]), Solver)
assert_type(ptrnet.tune("orders.csv", output="tuned", set_id="order", chosen="bought"), Tuning)
ptrnet.laod("hull")  # type: ignore[attr-defined]
solver.sovle([[0.0, 1.0]])  # type: ignore[attr-defined]
solver.solve([[0.0, 1.0]], constrained="yes")  # type: ignore[arg-type]
ptrnet.Beam("8")  # type: ignore[arg-type]
ptrnet.additive_scores([1.0], [1.0], [1.0])  # type: ignore[arg-type]
