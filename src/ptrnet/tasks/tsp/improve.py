"""Improve the tours of networks by small moves."""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN, matrix
from ptrnet.geometry.points import scale_by_power_of_two
from ptrnet.types import Example, Indices, TourRules


def improve(example: Example, outputs: Indices) -> Indices:
    """Return the tour after 2-opt and Or-opt moves, in the distances and rules of its file."""
    from ptrnet.labellers import local_search
    from ptrnet.labellers.rules import has_way_back, reduce, restore, with_fixed_edges

    points, n = example.inputs, len(example.inputs)
    if not 3 < n <= local_search.MAX_MATRIX:
        return outputs
    # Search among the cities from left to right, so that their indices do not matter.
    order = np.lexsort(points.T[::-1])
    place = np.argsort(order)
    start, end = (None if k is None else int(place[k]) for k in example.rules[:2])
    rules = TourRules(start, end, example.rules.is_open)
    points = points[order]
    if example.distance == EUCLIDEAN:
        points = scale_by_power_of_two(points)
    problem = reduce(matrix(points, example.distance), rules, directed=False)
    tour = place[outputs]
    tour = np.append(tour, n) if has_way_back(n, rules) else tour
    better = local_search.improved(with_fixed_edges(problem), tour)
    if better is tour:
        return outputs
    return order[restore(better, n, rules, directed=False)]
