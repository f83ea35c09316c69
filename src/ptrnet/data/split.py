"""Which of a file's examples are kept from the training, to validate on."""

import numpy as np

from ptrnet.errors import InputError
from ptrnet.types import Indices

_SPLIT = 5  # beside the other streams of a seed


def held_out(candidates: Indices, share: float, most: int, seed: int) -> Indices:
    """The numbers of the examples to validate on, in increasing order.

    Args:
        candidates: `(m,)` numbers of examples that could be trained on.
        share: of them that is wanted; at least one is taken unless it is 0.
        most: that are taken.
        seed: of the draw.

    Raises:
        InputError: none would be left to train on.
    """
    count = min(round(share * len(candidates)) or 1, most) if share else 0
    if count and count >= len(candidates):
        raise InputError(
            f"valid_share: of {len(candidates)} example{'s' * (len(candidates) != 1)} none would "
            "be left to train on"
        )
    rng = np.random.default_rng([seed, _SPLIT])
    return np.sort(rng.choice(candidates, count, replace=False))
