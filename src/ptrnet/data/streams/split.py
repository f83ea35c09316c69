"""Which of a file's examples are kept from the training, to validate on."""

import numpy as np

from ptrnet.types import Indices

_SPLIT = 5  # the random stream of a seed that no other draw takes


def draw_held_out(candidates: Indices, share: float, max_count: int, seed: int) -> Indices:
    """The numbers of the examples to validate on, in increasing order.

    Args:
        candidates: `(m,)` numbers of examples that could be trained on.
        share: of them to take; at least one is taken unless it is 0.
        max_count: the most that are taken.
        seed: of the draw.
    """
    count = min(round(share * len(candidates)) or 1, len(candidates), max_count) if share else 0
    rng = np.random.default_rng([seed, _SPLIT])
    return np.sort(rng.choice(candidates, count, replace=False))
