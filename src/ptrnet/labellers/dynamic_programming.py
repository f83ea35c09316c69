"""The best knapsacks, by dynamic programming over the pairs of weight and value that no other pair
dominates (Nemhauser and Ullmann 1969)."""

import numpy as np

from ptrnet.types import Answers, Floats, Indices, pad_answers

TOLERANCE = 1e-9  # share of the capacity that a knapsack may weigh more, as 0.1 + 0.2 and 0.3 do


def label(inputs: Floats) -> Answers:
    """The items of the most value that do not weigh more than the capacity, in increasing order.

    Args:
        inputs: `(B, n, 3)`: weight and value of each item, and the capacity.
    """
    return pad_answers([_best_items(instance) for instance in inputs])


def _best_items(instance: Floats) -> Indices:
    weights, values, (capacity, *_) = instance.T
    limit = capacity * (1 + TOLERANCE)
    weight, value = np.zeros(1), np.zeros(1)  # of the pairs that are not dominated
    origins = []  # of each pair after an item: of the pairs before it, without the item and with it
    for w, v in zip(weights, values, strict=True):
        weight, value = np.append(weight, weight + w), np.append(value, value + v)
        order = np.lexsort((-value, weight))
        order = order[weight[order] <= limit]
        best_before = np.maximum.accumulate(np.append(-np.inf, value[order]))[:-1]
        order = order[value[order] > best_before]
        origins.append(order)
        weight, value = weight[order], value[order]
    taken = []
    pair = len(value) - 1  # the heaviest pair has the most value
    sizes = [1, *map(len, origins)]
    for item in reversed(range(len(origins))):
        is_taken, pair = divmod(int(origins[item][pair]), sizes[item])
        if is_taken:
            taken.append(item)
    return np.array(taken[::-1], np.int64)
