"""Which of a file's examples are kept from the training, to validate on."""

import numpy as np

from ptrnet.types import Indices

_SPLIT = 5  # beside the other streams of a seed


def held_out(candidates: Indices, share: float, most: int, seed: int) -> Indices:
    """The numbers of the examples to validate on, in increasing order.

    Args:
        candidates: `(m,)` numbers of examples that could be trained on.
        share: of them that is wanted; at least one is taken unless it is 0.
        most: that are taken.
        seed: of the draw.
    """
    count = min(round(share * len(candidates)) or 1, len(candidates), most) if share else 0
    rng = np.random.default_rng([seed, _SPLIT])
    return np.sort(rng.choice(candidates, count, replace=False))
