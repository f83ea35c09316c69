"""Grow gradient-boosted trees (Friedman 2001) that score elements, by LightGBM.

The trees maximise the likelihood that networks maximise: the probability of an element is the
softmax of the scores of its set. `docs/dev/own-data-defaults.md` has the measurements behind the
settings.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ptrnet.data.checks import required_answer
from ptrnet.errors import MissingExtraError
from ptrnet.models.parts.trees import DEPTH, LEAVES, Trees
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Floats, Indices

if TYPE_CHECKING:
    import lightgbm

EXTRA, PACKAGE = "trees", "lightgbm"
SETTINGS = {
    "learning_rate": 0.05,
    "num_leaves": LEAVES,
    "max_depth": DEPTH,
    "min_data_in_leaf": 20,
    "bagging_freq": 1,
}
# The share of the features that each tree sees. Of fewer than FEW features it sees all, because
# otherwise it would miss most interactions.
FEATURE_SHARE, FEW = 0.6, 6
# The share of the rows that each tree sees, which are at most about MANY_ROWS.
ROW_SHARE, MANY_ROWS = 0.8, 50_000
# With these settings, the same seed grows the same trees on any number of cores.
REPEATABLE = {"num_threads": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1}
PATIENCE = 30  # stop after this many rounds without a higher likelihood of the validation sets
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
        starts = np.cumsum(self.sizes) - self.sizes
        shifted = scores - np.repeat(np.maximum.reduceat(scores, starts), self.sizes)
        sums = np.add.reduceat(np.exp(shifted), starts)
        return shifted - np.repeat(np.log(sums), self.sizes)

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


def is_installed() -> bool:
    """Whether the extra is installed."""
    return find_spec(PACKAGE) is not None


def check_extra() -> None:
    """Raise MissingExtraError if the extra is not installed."""
    if not is_installed():
        raise MissingExtraError("growing trees", EXTRA)


def grow(learned: Sequence[Sets], held_out: Sequence[Sets], most: int, seed: int) -> list[Trees]:
    """Grow trees on each of several parts of the data. All of them get equally many trees.

    Each round grows one tree in every part. We keep the rounds until the sum of the log-likelihoods
    of all sets that are held out is highest. No trees grow if no tree could split a part.

    Args:
        learned: for each part, the sets to learn from.
        held_out: for each part, sets that the part does not learn from.
        most: the most rounds.
        seed: the seed of the rows and features that each tree sees.
    """
    import lightgbm

    boosters: list[lightgbm.Booster] = []
    for k, (sets, others) in enumerate(zip(learned, held_out, strict=True)):
        settings = {**SETTINGS, **REPEATABLE, "objective": "none", "seed": (seed + k) % 2**31}
        if sets.signs.any():
            # A tree splits by the features of the element itself, so it keeps the sign for every
            # set. So does the sum of all trees.
            settings["monotone_constraints"] = sets.signs.tolist()
        rows, width = sets.features.shape
        settings["bagging_fraction"] = min(ROW_SHARE, MANY_ROWS / rows)
        settings["feature_fraction"] = FEATURE_SHARE if width >= FEW else 1.0
        data = lightgbm.Dataset(sets.features, sets.targets, params=settings).construct()
        if not any(data.feature_num_bin(feature) for feature in range(data.num_feature())):
            return [Trees(0) for _ in learned]  # too few rows, or no feature that tells them apart
        booster = lightgbm.Booster(settings, data)
        booster.add_valid(data.create_valid(others.features, others.targets), "held out")
        boosters.append(booster)
    best, rounds = -np.inf, 0
    for number in range(most + 1):
        total = 0.0
        for booster, others in zip(boosters, held_out, strict=True):
            ((*_, value, _),) = booster.eval_valid(_measure(others))
            total += value
        if total > best:
            best, rounds = total, number
        if number == most or number - rounds >= PATIENCE:
            break
        for booster, sets in zip(boosters, learned, strict=True):
            booster.update(fobj=_objective(sets))
    return [trees_of(booster, rounds) for booster in boosters]


def _objective(sets: Sets) -> Any:
    return lambda scores, _: sets.gradients(scores)


def _measure(sets: Sets) -> Any:
    return lambda scores, _: ("log-likelihood", sets.log_likelihood(scores), True)


def trees_of(booster: "lightgbm.Booster", count: int) -> Trees:
    """Return the first `count` trees of LightGBM's model. Features must be numbers without gaps."""
    grown = Trees(count)
    infos = booster.dump_model(num_iteration=count)["tree_info"] if count else []
    # The feature and threshold of each node, its children, and its value.
    for tree, info in enumerate(infos):
        nodes = [info["tree_structure"]]
        for k, node in enumerate(nodes):  # the list grows in the loop
            if "leaf_value" in node:
                grown.values[tree, k] = node["leaf_value"]
                continue
            assert node["decision_type"] == "<="
            grown.features[tree, k] = node["split_feature"]
            grown.thresholds[tree, k] = rounded_down(node["threshold"])
            grown.branches[tree, k] = torch.tensor([len(nodes), len(nodes) + 1])
            nodes += [node["left_child"], node["right_child"]]
    return grown


def rounded_down(threshold: float) -> float:
    """Return the largest float32 that is at most `threshold`.

    A float32 is at most `threshold` if and only if it is at most the result.
    """
    nearest = np.float32(threshold)
    below = np.nextafter(nearest, np.float32(-np.inf))
    return float(below if float(nearest) > threshold else nearest)
