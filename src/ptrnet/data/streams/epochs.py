"""The order in which the examples of a file or a list are drawn."""

import numpy as np

from ptrnet.types import Indices


def shuffled_batches(
    indices: Indices, sizes: Indices, batch_size: int, rng: np.random.Generator
) -> list[Indices]:
    """The indices of the examples in every batch of one epoch, each index once.

    They are shuffled, sorted by size, and cut into batches, whose order is shuffled, too. So in
    nearly all batches the instances have one size; one batch may have fewer examples.

    Args:
        indices: `(num_examples,)` of the examples to draw.
        sizes: the elements of every example, by its index.
        batch_size: examples in a batch, B.
        rng: draws both orders.
    """
    order = rng.permutation(indices)
    order = order[np.argsort(sizes[order], kind="stable")]
    starts = rng.permutation(-(-len(indices) // batch_size)) * batch_size
    return [order[start : start + batch_size] for start in starts]
