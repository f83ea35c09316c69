"""Best knapsacks, by dynamic programming (Nemhauser and Ullmann 1969).

Each set of items has a pair of weight and value. The algorithm keeps the pairs that no other pair
dominates. Pair a dominates pair b if a is at most as heavy as b, and at least as valuable.
"""

import numpy as np

from ptrnet.geometry.tolerance import with_tolerance
from ptrnet.types import Floats, Indices

FAILURE = "no item fits into the capacity"


def label(inputs: Floats) -> list[Indices]:
    """Return the set of items with the largest total value within the capacity, as sorted indices.

    An answer may end only if no other item fits. So we also take worthless items while they fit.
    Instances `(B, n, 3)` have the weight and the value of each item, and the capacity.
    """
    return [_best_items(instance) for instance in inputs]


def _best_items(instance: Floats) -> Indices:
    weights, values, (capacity, *_) = instance.T
    limit = with_tolerance(capacity)
    weight, value = np.zeros(1), np.zeros(1)  # of the pairs that are not dominated
    # Each item replaces the P old pairs, numbers 0 to P - 1, by new pairs. A new pair is the old
    # pair number p, with or without the item. The item's array in `origins` has a number for each
    # new pair: p without the item, P + p with the item.
    origins = []
    for w, v in zip(weights, values, strict=True):
        weight, value = np.append(weight, weight + w), np.append(value, value + v)
        order = np.lexsort((-value, weight))
        order = order[weight[order] <= limit]
        best_before = np.maximum.accumulate(np.append(-np.inf, value[order]))[:-1]
        order = order[value[order] > best_before]
        origins.append(order)
        weight, value = weight[order], value[order]
    taken = np.zeros(len(weights), bool)
    pair = len(value) - 1  # pairs are sorted by weight, and the heaviest has the largest value
    sizes = [1, *map(len, origins)]
    for item in reversed(range(len(origins))):
        taken[item], pair = divmod(int(origins[item][pair]), sizes[item])
    room = limit - weights[taken].sum()
    for k in np.flatnonzero(~taken):
        if weights[k] <= room:
            taken[k] = True
            room -= weights[k]
    return np.flatnonzero(taken)
