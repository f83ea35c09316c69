"""CVRPLIB's, OPLib's and job shops' files: optima of published instances, and what is refused."""

import re

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
from ptrnet.types import Example

VRP = """NAME : small
COMMENT : (by hand)
TYPE : CVRP
DIMENSION : 4
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 6
NODE_COORD_SECTION
1 3 4
2 0 0
3 6 8
4 10.4 0
DEMAND_SECTION
1 2
2 0
3 4
4 3
DEPOT_SECTION
 2
 -1
