"""The formulas of `ptrnet.geometry.predicates`, compiled for floats."""

from ptrnet.geometry import predicates
from ptrnet.jit import jit

pair = jit(predicates.pair)
turn = jit(predicates.turn)
turn_terms = jit(predicates.turn_terms)
turn_slack = jit(predicates.turn_slack)
is_between = jit(predicates.is_between)
is_rounded = jit(predicates.is_rounded)
in_circle = jit(predicates.in_circle)
in_circle_terms = jit(predicates.in_circle_terms)
