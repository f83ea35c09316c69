"""TSPLIB's `.atsp`: a `.tsp` of a matrix whose distances may depend on the direction."""

from dataclasses import replace

from ptrnet.data.formats import tsp
from ptrnet.data.formats.tsp import read, write
from ptrnet.geometry.distances import EXPLICIT

__all__ = ["CAPABILITIES", "read", "write"]

CAPABILITIES = replace(tsp.CAPABILITIES, distances=(EXPLICIT,))
