"""Which of a file's examples are held out from the training, to validate on."""

import numpy as np

from ptrnet.data.random_streams import HELD_OUT
from ptrnet.types import Indices


def draw_held_out(candidates: Indices, share: float, max_count: int, seed: int) -> Indices:
    """The indices of the examples to validate on, in increasing order.

    Args:
        candidates: `(num_examples,)` indices of the examples that could be trained on.
        share: the share of them that is held out; at least one is, unless the share is 0.
        max_count: the most that are held out.
        seed: of the draw.
    """
    count = min(round(share * len(candidates)) or 1, len(candidates), max_count) if share else 0
    rng = np.random.default_rng([seed, HELD_OUT])
    return np.sort(rng.choice(candidates, count, replace=False))
