"""The formulas of `ptrnet.geometry.predicates`, compiled for floats."""

from ptrnet.geometry import predicates
from ptrnet.jit import jit
from ptrnet.types import Floats

pair = jit(predicates.pair)
turn = jit(predicates.turn)
turn_terms = jit(predicates.turn_terms)
turn_slack = jit(predicates.turn_slack)
is_between = jit(predicates.is_between)
is_rounded = jit(predicates.is_rounded)
in_circle = jit(predicates.in_circle)
in_circle_terms = jit(predicates.in_circle_terms)


@jit
def lost_digits(inputs: Floats, scaled: Floats) -> bool:
    """Whether scaling made a coordinate of points `(n, 2)` so small that it may lack digits."""
    for i in range(len(inputs)):
        for axis in range(2):
            if inputs[i, axis] != 0 and abs(scaled[i, axis]) < predicates.UNDERFLOW:
                return True
    return False
