"""Fit `Spaces` to a few hundred examples: ridges in three spaces, and a mixture of their scores.

Each space is fitted with ridges of several strengths, which are the members of the mixture. The
score of an element is `sum_m w_m f_m`. The weights w maximise the likelihood of examples that the
members did not learn from. They are drawn to equal weights, the more so the more examples a group
has, because only groups are independent. `python -m ptrnet_lab.chooser` shows how the settings were
chosen: on drawn worlds.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from zlib import crc32

import numpy as np
import torch

from ptrnet.models.parts.spaces import FARTHEST, LENGTH, Spaces, kernel, places
from ptrnet.tasks.base import Task
from ptrnet.training.sets import Sets
from ptrnet.types import Dataset, Floats, Indices

FOLDS, MANY, FEW_FOLDS = 5, 2_000, 2  # MANY examples are held out in FEW_FOLDS, for speed
RANK = 60  # the most directions of a space
KERNELS_AT_ONCE = 1_000  # elements whose kernels are in memory at the same time
NEWTON_STEPS = 20
LARGEST_STEP = 3.0  # the most that a step of Newton's method changes a score
CLOSE = 1e-4  # Newton's method ends with a step that changes scores by less than this


@dataclass(frozen=True)
class FitSettings:
    """Settings of the fit. A space without strengths has no effect.

    Attributes:
        linear: strengths of the ridges of the linear space, for each feature, so that more features
            do not mean more different scores, before examples are seen.
        curved, placed: those of the kernels of features and of places.
        of_choices, of_grades: the precision of equal weights, if all examples are of different
            groups. Grades tell more about an example's elements than a choice.
        exponent: the precision grows with the mean weight of a group to this power.
    """

    linear: tuple[float, ...] = (0.02, 0.2, 2.0, 10.0)
    curved: tuple[float, ...] = (0.05, 0.2, 1.0, 5.0)
    placed: tuple[float, ...] = (0.05, 0.2, 1.0, 5.0)
    of_choices: float = 30.0
    of_grades: float = 10.0
    exponent: float = 1.5


SHIPPED = FitSettings()


class Space(NamedTuple):
    """The elements of examples in one space, and how a score of this space is stored."""

    x: Floats  # (num_elements, r)
    strengths: Floats  # (L,), of the ridges
    basis: Floats  # (d or R, r): `basis @ w` are the numbers that `Spaces` keeps for weights w


def fit_spaces(examples: Dataset, task: Task, most: int, settings: FitSettings = SHIPPED) -> Spaces:
    """Fit to examples of choices or grades. Keep at most `most` of their elements.

    The order of examples, elements and features has no effect, and neither have their units.
    """
    sets = Sets.of(examples, task)
    names = np.arange(len(sets.sizes)) if examples.groups is None else examples.groups
    spaces, z, p = _standardised(sets)
    folds, num_groups = _folds(sets, z, p, names)
    parts = [_linear(z, settings), *_curved(spaces, z, p, most, settings)]
    learned = [_members(space, sets, folds) for space in parts]
    held_out = np.concatenate([scores for _, scores in learned], 1)
    equal = np.full((held_out.shape[1], 1), 1 / held_out.shape[1])
    precision = settings.of_choices if task.facts.kind == "choice" else settings.of_grades
    precision *= (sets.weights.sum() / num_groups) ** settings.exponent
    shares = equal[:, 0]
    if folds.max() > 0:
        every = np.ones((len(sets.sizes), 1))
        shares = newton(held_out, sets, every, np.array([precision]), equal)[:, 0]
    of_spaces = np.split(shares, np.cumsum([len(space.strengths) for space in parts])[:-1])
    targets = (spaces.weights, spaces.of_rows, spaces.of_places)
    with torch.no_grad():
        for space, (weights, _), own, target in zip(
            parts, learned, of_spaces, targets, strict=True
        ):
            target[: len(space.basis)] = torch.from_numpy(space.basis @ (weights @ own))
    return spaces


def _standardised(sets: Sets) -> tuple[Spaces, Floats, Floats]:
    """Return `Spaces` without rows, and the elements of the examples in its two kinds of space."""
    x = sets.features.astype(float)
    means: Floats = x.mean(0)
    deviations: Floats = x.std(0)
    spaces = Spaces(x.shape[1], 0)
    spaces.means.copy_(torch.from_numpy(means))
    scales = np.where(deviations > 1e-6 * (1 + abs(means)), deviations, np.inf) ** -1
    spaces.scales.copy_(torch.from_numpy(scales))
    z = np.clip((x - means) * scales, -FARTHEST, FARTHEST)
    parts = torch.split(torch.from_numpy(z), sets.sizes.tolist())
    of_sets = [places(part[None], torch.ones(1, len(part), dtype=torch.bool))[0] for part in parts]
    return spaces, z, torch.cat(of_sets).numpy()


def _linear(z: Floats, settings: FitSettings) -> Space:
    """The features themselves, or their RANK main directions."""
    strengths = max(1, np.count_nonzero(z.any(0))) * np.array(settings.linear)
    if z.shape[1] <= RANK:
        return Space(z, strengths, np.eye(z.shape[1]))
    basis = np.linalg.eigh(z.T @ z)[1][:, -RANK:]
    return Space(z @ basis, strengths, basis)


def _curved(spaces: Spaces, z: Floats, p: Floats, most: int, settings: FitSettings) -> list[Space]:
    """The RANK main directions of functions `sum_i a_i k(x, x_i)` (Williams and Seeger 2001).

    The rows x_i, which are some of z and of p, are stored in `spaces`.
    """
    length = LENGTH * np.sqrt(max(1, len(np.flatnonzero(z.any(0)))))
    parts, rows = [], [_some_rows(x, most) for x in (z, p)]
    strengths = (settings.curved, settings.placed)
    for x, own, of_space in zip((z, p), rows, strengths, strict=True):
        of = partial(kernel, rows=torch.from_numpy(own), length=length)
        values, vectors = np.linalg.eigh(of(torch.from_numpy(own)).numpy())
        kept = np.flatnonzero(values > 1e-6 * values[-1])[-RANK:]
        basis = vectors[:, kept] / np.sqrt(values[kept])
        kernels = map(of, torch.split(torch.from_numpy(x), KERNELS_AT_ONCE))
        own_x = np.concatenate([part.numpy() @ basis for part in kernels])
        parts.append(Space(own_x, np.array(of_space), basis))
    spaces.resize(max(map(len, rows)))
    for own, target in zip(rows, (spaces.rows, spaces.places), strict=True):
        target[: len(own)].copy_(torch.from_numpy(own))
    return parts


def _some_rows(x: Floats, most: int) -> Floats:
    """The different rows of x, or `most` of them, which do not depend on any order."""
    rows = np.unique(x, axis=0)
    keys = [crc32((np.sort(row.round(4)) + 0.0).tobytes()) for row in rows]  # 0.0: there is a -0.0
    return rows[np.argsort(keys, kind="stable")[:most]]


def _members(space: Space, sets: Sets, folds: Indices) -> tuple[Floats, Floats]:
    """Fit each strength to all examples, and to those that are not in a fold.

    Returns:
        The weights `(r, L)` of all examples, and scores `(num_elements, L)`. The score of an
        example's element is that of weights which did not learn from the example's fold.
    """
    every = np.ones((len(folds), len(space.strengths)))
    start = np.zeros((space.x.shape[1], len(space.strengths)))
    weights = newton(space.x, sets, every, space.strengths, start)
    scores = space.x @ weights
    for fold in range(int(folds.max()) + 1):
        is_held_out = np.repeat(folds == fold, sets.sizes)
        learns = every * (folds != fold)[:, None]
        without = newton(space.x, sets, learns, space.strengths, start, weights)
        scores[is_held_out] = space.x[is_held_out] @ without
    return weights, scores


def newton(
    x: Floats,
    sets: Sets,
    learns: Floats,
    strengths: Floats,
    center: Floats,
    start: Floats | None = None,
) -> Floats:
    """Maximise likelihoods with ridges, by Newton's method.

    Fit m has the maximum of `sum_s l_sm v_s sum_j t_j log softmax(x w)_j - strength_m / 2 |w -
    center_m|^2`, where v are the weights of the sets, and t the targets of their elements.

    Args:
        x: `(num_elements, r)`.
        sets: the sets of the elements, their targets and weights.
        learns: `(num_sets, M)`, l: how much a set counts in a fit.
        strengths: `(M,)`.
        center: `(r, M)`, what the ridge draws the weights to.
        start: `(r, M)`, the first weights; None: `center`.

    Returns:
        The weights w `(r, M)`.
    """
    starts = np.cumsum(sets.sizes) - sets.sizes
    learns = learns * sets.weights[:, None]
    of_sets = learns * np.add.reduceat(sets.targets, starts)[:, None]
    weights = (center if start is None else start).copy()
    for m, strength in enumerate(strengths):
        of_elements, target = (np.repeat(part[:, m], sets.sizes) for part in (of_sets, learns))
        target, w = target * sets.targets, weights[:, m]
        for _ in range(NEWTON_STEPS):
            p = np.exp(sets.log_probabilities(x @ w))
            slope = x.T @ (p * of_elements - target) + strength * (w - center[:, m])
            weighted = p[:, None] * x
            means = np.add.reduceat(weighted, starts)
            curvature = (of_elements[:, None] * weighted).T @ x
            curvature -= (of_sets[:, m, None] * means).T @ means
            curvature.flat[:: len(w) + 1] += strength
            step = np.linalg.solve(curvature, slope)
            change = np.abs(x @ step).max()
            w -= step * min(1, LARGEST_STEP / max(change, 1e-9))  # in place, in `weights`
            if change < CLOSE:
                break
    return weights


def _folds(sets: Sets, z: Floats, p: Floats, names: Indices) -> tuple[Indices, int]:
    """A fold for each set, and the number of groups. Sets of a group share their fold.

    The examples of a single group are told apart as if each was of another group. Folds follow from
    what the sets hold, so the order of sets, elements and features has no effect: from places and
    targets, and if these are equal, from the features.
    """
    groups, of_set = np.unique(names, return_inverse=True)
    if len(groups) == 1:
        groups = of_set = np.arange(len(sets.sizes))
    rows = np.column_stack([np.sort(p.round(4) + 0.0, 1), sets.targets.round(4)])
    keys = np.column_stack([[crc32(row.tobytes()) for row in rows], z.sum(1) + (z**2).sum(1)])
    of_groups = np.zeros((len(groups), 2))
    np.add.at(of_groups, of_set, np.add.reduceat(keys, np.cumsum(sets.sizes) - sets.sizes))
    fold, count = np.empty(len(groups), np.int64), FOLDS if len(sets.sizes) < MANY else FEW_FOLDS
    order = np.lexsort(of_groups.T[::-1])
    fold[order] = np.arange(len(groups)) % min(count, len(groups))
    return fold[of_set], len(groups)
