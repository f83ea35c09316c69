"""Make combinations of several factors' values that contain every pair of values.

Most defects that need a combination at all need one of two values (Kuhn, Wallace, Gallo 2004).
All combinations multiply with every factor; those that cover all pairs grow about as the product
of the two largest.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from typing import Any


def pairwise(
    *factors: Sequence[Any], valid: Callable[..., bool] = lambda *row: True
) -> list[tuple[Any, ...]]:
    """Valid combinations, one value of each factor, that cover every pair that a valid one has.

    Greedy and deterministic: the next combination is, of those that hold the first pair that is
    not covered yet, the one that covers most. With the largest factors first the list is short.
    """
    rows = [
        indices
        for indices in product(*(range(len(values)) for values in factors))
        if valid(*_values(factors, indices))
    ]
    holding = defaultdict(list)  # the rows that hold a pair, in the order of pairs of factors
    for i, j in combinations(range(len(factors)), 2):
        for row in rows:
            holding[i, row[i], j, row[j]].append(row)
    uncovered, covering = dict.fromkeys(holding), []
    while uncovered:
        first = next(iter(uncovered))
        best = max(holding[first], key=lambda row: sum(p in uncovered for p in _pairs(row)))
        covering.append(_values(factors, best))
        for pair in _pairs(best):
            uncovered.pop(pair, None)
    return covering


def _values(factors: Sequence[Sequence[Any]], indices: Iterable[int]) -> tuple[Any, ...]:
    return tuple(values[i] for values, i in zip(factors, indices, strict=True))


def _pairs(row: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    return [(i, row[i], j, row[j]) for i, j in combinations(range(len(row)), 2)]
