"""Sets of elements, and the likelihood of the scores that models other than networks give them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptrnet.data.checks import required_answer
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Floats, Indices

SMALLEST_CURVATURE = 1e-3


class Sets(NamedTuple):
    """Sets of elements, one after another, and the probabilities that their scores should have."""

    features: NDArray[np.float32]  # (num_elements, d), as the model reads them
    sizes: Indices  # (num_sets,)
    targets: Floats  # (num_elements,) probabilities, which sum to 1 in each set
    weights: Floats  # (num_sets,)
    signs: Indices = np.zeros(0, int)  # (d,), as `Schema.signs`; empty: no feature has a sign

    @classmethod
    def of(cls, data: Dataset, task: Task) -> "Sets":
        """Return the sets of examples.

        The target of a choice is 1 for the chosen element. The targets of grades are their softmax
        over the set, as in ListNet (Cao et al. 2007).
        """
        targets = np.zeros(int(data.sizes.sum()))
        stops = np.cumsum(data.sizes)
        for example, stop in zip(data, stops.tolist(), strict=True):
            of_set = targets[stop - len(example.inputs) : stop]
            if example.grades is None:
                of_set[required_answer(example, task)] = 1
            else:
                of_set[:] = np.exp(example.grades - example.grades.max())
                of_set /= of_set.sum()
        features = np.concatenate([task.normalize(example.inputs) for example in data])
        weights = np.array([example.weight for example in data], float)
        features = features.astype(np.float32)
        return cls(features, data.sizes, targets, weights, task.facts.signs)

    def log_probabilities(self, scores: Floats) -> Floats:
        """Return the log-softmax `(num_elements,)` of scores over each set."""
        return log_softmax(scores, self.sizes)

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the first and second derivatives of the loss by each score.

        The second derivatives are at least SMALLEST_CURVATURE, times the weights.
        """
        p, weights = np.exp(self.log_probabilities(scores)), np.repeat(self.weights, self.sizes)
        curvatures = np.maximum(p * (1 - p), SMALLEST_CURVATURE)
        return weights * (p - self.targets), weights * curvatures

    def log_likelihood(self, scores: Floats) -> float:
        """Return the sum over all sets of the targets times the log-probabilities."""
        weights = np.repeat(self.weights, self.sizes)
        return float((weights * self.targets) @ self.log_probabilities(scores))


def log_softmax(scores: Floats, sizes: Indices) -> Floats:
    """Return the log-softmax of scores over each set. The sets follow each other."""
    starts = np.cumsum(sizes) - sizes
    shifted = scores - np.repeat(np.maximum.reduceat(scores, starts), sizes)
    return shifted - np.repeat(np.log(np.add.reduceat(np.exp(shifted), starts)), sizes)
