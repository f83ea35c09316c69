"""TSPLIB's `.atsp`: as `.tsp`, with a matrix of distances that may depend on the direction."""

from dataclasses import replace

from ptrnet.data.formats import tsp
from ptrnet.data.formats.tsp import read, write
from ptrnet.geometry.distances import EXPLICIT

__all__ = ["CAPABILITIES", "read", "write"]

CAPABILITIES = replace(tsp.CAPABILITIES, distances=(EXPLICIT,))
