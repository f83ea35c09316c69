"""Grow gradient-boosted trees (Friedman 2001) that score elements, by LightGBM.

The trees maximise the likelihood that networks maximise: the probability of an element is the
softmax of the scores of its set. `docs/dev/own-data-defaults.md` has the measurements behind the
settings.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from ptrnet.masks import length_mask
from ptrnet.models.parts.attention import with_comparisons
from ptrnet.models.parts.trees import DEPTH, LEAVES, Trees
from ptrnet.training.sets import Sets

if TYPE_CHECKING:
    import lightgbm

SETTINGS = {
    "learning_rate": 0.05,
    "num_leaves": LEAVES,
    "max_depth": DEPTH,
    "min_data_in_leaf": 20,
    "bagging_freq": 1,
}
# The share of the features that each tree sees. It sees all of fewer than FEW features, because
# otherwise it would miss most interactions, and all features of MANY_ROWS, which do not overfit.
FEATURE_SHARE, FEW, MANY_ROWS = 0.6, 6, 100_000
# Trees read features of more numbers alone, without those of other elements: for speed.
MOST_COMPARED = 5_000_000
PADDED_AT_ONCE = 256  # sets
# The share of the rows that each tree sees, which are at most about MOST_ROWS.
ROW_SHARE, MOST_ROWS = 0.8, 200_000
# With these settings, the same seed grows the same trees on any number of cores.
REPEATABLE = {"num_threads": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1}
FIRST = 60  # rounds after which trees are useful
PATIENCE = 30  # stop after this many rounds without a higher likelihood of the validation sets


def grow(
    learned: Sequence[Sets],
    held_out: Sequence[Sets],
    most: int,
    seed: int,
    compared: bool,
) -> Iterator[list[Trees]]:
    """Grow trees on each of several parts of the data. All of them get equally many trees.

    Each round grows one tree in every part. We keep the rounds until the sum of the log-likelihoods
    of all sets that are held out is highest. No trees grow if no tree could split a part. There are
    at most `most` rounds. The seed is that of the rows and features that each tree sees. If
    `compared`, trees also read differences from the other elements; see `read_by_trees`.

    Yields:
        The trees of each part: those of the first rounds, if there are more than FIRST rounds, and
        at the end all of them.
    """
    import lightgbm

    boosters: list[lightgbm.Booster] = []
    compared = compared and max(sets.features.size for sets in learned) <= MOST_COMPARED
    for k, (sets, others) in enumerate(zip(learned, held_out, strict=True)):
        settings = {**SETTINGS, **REPEATABLE, "objective": "none", "seed": (seed + k) % 2**31}
        features, valid = (
            read_by_trees(part) if compared else part.features for part in (sets, others)
        )
        rows, width = features.shape
        if sets.signs.any():
            # No number but the element's own feature depends on a feature with a sign, so a tree
            # keeps the sign for every set. So does the sum of all trees.
            signs = np.pad(sets.signs, (0, width - len(sets.signs)))
            settings["monotone_constraints"] = signs.tolist()
        settings["bagging_fraction"] = min(ROW_SHARE, MOST_ROWS / rows)
        sees_all = width < FEW or rows >= MANY_ROWS
        settings["feature_fraction"] = 1.0 if sees_all else FEATURE_SHARE
        data = lightgbm.Dataset(features, sets.targets, params=settings).construct()
        if not any(data.feature_num_bin(feature) for feature in range(data.num_feature())):
            yield [Trees(0) for _ in learned]  # too few rows, or no feature that tells them apart
            return
        booster = lightgbm.Booster(settings, data)
        booster.add_valid(data.create_valid(valid, others.targets), "held out")
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
        if number == FIRST:
            yield [trees_of(booster, rounds) for booster in boosters]
        for booster, sets in zip(boosters, learned, strict=True):
            booster.update(fobj=_objective(sets))
    yield [trees_of(booster, rounds) for booster in boosters]


def read_by_trees(sets: Sets) -> NDArray[np.float32]:
    """Return the numbers `(num_elements, 3 d)` that trees for choices read."""
    is_free = torch.from_numpy(sets.signs == 0) if sets.signs.any() else torch.tensor(True)
    of_sets = torch.split(torch.from_numpy(sets.features), sets.sizes.tolist())
    found = []
    for first in range(0, len(of_sets), PADDED_AT_ONCE):
        part = slice(first, first + PADDED_AT_ONCE)
        inputs = pad_sequence([*of_sets[part]], batch_first=True)
        is_element = length_mask(torch.from_numpy(sets.sizes[part]), inputs.shape[1])
        found.append(with_comparisons(inputs, inputs * is_free, is_element)[is_element].numpy())
    return np.concatenate(found)


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
